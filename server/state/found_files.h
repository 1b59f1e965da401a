// The files of a job that a server finds in its directory when it starts. Plain values.

#ifndef SLUICE_SERVER_STATE_FOUND_FILES_H_
#define SLUICE_SERVER_STATE_FOUND_FILES_H_

#include <string>
#include <vector>

namespace sluice {

// A checkpoint, the file of a stripe, or a segment of a journal.
struct FoundFile {
  std::string name;    // has its incarnation and step (common/checkpoint/file_names.h)
  std::string job_id;  // empty: it is of a journal, which names no job, or it is damaged
};

struct FoundFiles {
  std::string directory;
  std::vector<FoundFile> files;  // of each kind, the newest file of each server
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_FOUND_FILES_H_

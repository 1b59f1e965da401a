// What a server finds of a job in its directory when it starts, as plain values.

#ifndef SLUICE_SERVER_STATE_FOUND_FILES_H_
#define SLUICE_SERVER_STATE_FOUND_FILES_H_

#include <string>
#include <vector>

namespace sluice {

// A checkpoint, a stripe, or a segment of a journal. Its name has its numbers.
struct FoundFile {
  std::string name;
  std::string job_id;  // empty: a journal does not say, or the file is damaged
};

struct FoundFiles {
  std::string directory;
  std::vector<FoundFile> files;  // the newest of each kind and server
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_FOUND_FILES_H_

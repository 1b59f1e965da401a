// Before a job continues, checks that the directories of its servers belong together. An operator
// may have lost one, exchanged two, or restored an old copy of one. If the job continued then, its
// servers would replace files that are still good.

#ifndef SLUICE_SERVER_DURABLE_ONE_JOB_H_
#define SLUICE_SERVER_DURABLE_ONE_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/storage/file_system.h"
#include "server/state/found_files.h"

namespace sluice {

// Finds the newest files in a directory (see FoundFiles), and reads which job they name. It changes
// no file. Errors are FileSystem's.
absl::StatusOr<FoundFiles> FindFiles(FileSystem& files, const std::string& directory);

// What the leader has found in its own directory.
struct FirstDirectory {
  std::string path;
  uint32_t servers = 1;  // of the job that starts
  std::string job_id;    // that its files name; empty: no file names one
  // It has a file life-* that the checkpoint does not list: an incarnation began here after it. If
  // job_id is empty all the same, that incarnation could not write the id, as the disk was full.
  bool has_begun = false;
  Incarnation next;  // the number of the incarnation that begins now
  // The number of servers that have saved the checkpoint from which the job continues; 0: there is
  // no checkpoint.
  uint32_t saved_by = 0;
};

// Returns OK if these files may be in the directory of server `server`; 0 is the leader. DATA_LOSS
// says what was found where, what is missing, and what to do.
absl::Status CheckOneJob(const FirstDirectory& first, uint32_t server, const FoundFiles& found);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ONE_JOB_H_

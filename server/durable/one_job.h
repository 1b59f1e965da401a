// Before a job continues, checks that the directories of its servers belong together. One of them
// may be lost, may be another server's, or may be older than the others. If the job continued then,
// its servers would replace files that are still good.

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

// Finds the newest files in a directory, and reads their headers. It changes no file. Errors are
// FileSystem's.
absl::StatusOr<FoundFiles> FindFiles(FileSystem& files, const std::string& directory);

// What the first server knows from its own directory.
struct FirstDirectory {
  std::string path;
  uint32_t servers = 1;    // of the job that starts
  std::string job_id;      // empty: it knows no job
  bool has_begun = false;  // an incarnation has, whose file names the job if it could be written
  Incarnation next;        // the number of the incarnation that begins
  // The number of servers that have saved the checkpoint from which the job continues; 0: there is
  // none.
  uint32_t saved_by = 0;
};

// Returns OK if these files may be in the directory of server `server`, where 0 is the first
// server. DATA_LOSS says what was found where, what is missing, and what to do.
absl::Status CheckOneJob(const FirstDirectory& first, uint32_t server, const FoundFiles& found);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ONE_JOB_H_

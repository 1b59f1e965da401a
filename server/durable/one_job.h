// The directories of a job's servers belong together. A server that starts looks first at what is
// in them: if one is lost, is another server's, or is older than the others, a job that went on
// would replace what is left.

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

// Looks at a directory, and changes nothing. It reads the headers of the newest files. Errors are
// FileSystem's.
absl::StatusOr<FoundFiles> FindFiles(FileSystem& files, const std::string& directory);

// What the first server's directory says.
struct FirstDirectory {
  std::string path;
  uint32_t servers = 1;  // of the job that starts
  std::string job_id;    // empty: it knows no job
  Incarnation next;      // the number of the incarnation that begins
  // The number of servers that have saved the checkpoint from which the job continues; 0: there is
  // none.
  uint32_t saved_by = 0;
};

// Whether what was found in the directory of server `server`, 0 is the first, may be there.
// DATA_LOSS says what was found where, what is missing, and what to do.
absl::Status CheckOneJob(const FirstDirectory& first, uint32_t server, const FoundFiles& found);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_ONE_JOB_H_

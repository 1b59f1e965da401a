// What the other servers of a job have saved of a checkpoint. The thread that writes the
// leader's file of the checkpoint waits for it, because that file names the checksums.

#ifndef SLUICE_SERVER_STATE_SAVED_STRIPES_H_
#define SLUICE_SERVER_STATE_SAVED_STRIPES_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"

namespace sluice {

// Any thread may call any method.
class SavedStripes {
 public:
  explicit SavedStripes(uint32_t others) : checksums_(others) {}

  // Server `replica`, from 1, has saved its stripe, or the error says why it cannot. False, and
  // nothing happens, if it has reported before.
  bool Set(uint32_t replica, const absl::StatusOr<uint64_t>& checksum) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for no server from now on. `why` is an error.
  void Stop(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether all servers have reported.
  bool complete() const ABSL_LOCKS_EXCLUDED(mu_);

  // Waits for all other servers. Returns the checksums of their files, in order; or the first error
  // of a server, or of Stop().
  absl::StatusOr<std::vector<uint64_t>> Await() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !failed_.ok() || IsComplete(); }

  mutable absl::Mutex mu_;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::optional<absl::StatusOr<uint64_t>>> checksums_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SAVED_STRIPES_H_

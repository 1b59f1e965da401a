// The values of the constants of a job's model (common/tensor/constant_tensor.h): in memory, and in
// a file of the server's directory (common/checkpoint/reading/constants_file.h), if it has one.
// They are set once. With several servers only the leader has them.

#ifndef SLUICE_SERVER_DURABLE_CONSTANT_STORE_H_
#define SLUICE_SERVER_DURABLE_CONSTANT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/storage/file_system.h"
#include "common/tensor/constant_tensor.h"

namespace sluice {

// All values, one tensor after the other in the order of the layout, and their XXH3-64.
struct ConstantValues {
  std::string bytes;
  uint64_t checksum = 0;
};

// May be used by any thread.
class ConstantStore {
 public:
  // `directory` is that of the checkpoints; empty: nothing is saved. `files` outlives it.
  ConstantStore(std::string job_id, std::string directory, FileSystem& files = RealFileSystem())
      : job_id_(std::move(job_id)), directory_(std::move(directory)), files_(files) {}

  // Reads the values of a job that goes on, of which these are the constants. Errors are those of
  // ReadConstants().
  absl::Status Restore(const std::vector<ConstantTensor>& constants) ABSL_LOCKS_EXCLUDED(mu_);

  // Null before there are values.
  std::shared_ptr<const ConstantValues> values() const ABSL_LOCKS_EXCLUDED(mu_);

  // Takes `bytes`, which have the size of `constants`, unless there are values already, and returns
  // the job's. Saves them first, which may take long; one thread at a time. If they cannot be
  // saved, they do not count: FAILED_PRECONDITION, or RESOURCE_EXHAUSTED if the disk is full.
  absl::StatusOr<std::shared_ptr<const ConstantValues>> Adopt(
      const std::vector<ConstantTensor>& constants, std::string bytes) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Save(const std::vector<ConstantTensor>& constants, const std::string& bytes) const;
  std::shared_ptr<const ConstantValues> Set(std::string bytes) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string job_id_;
  const std::string directory_;
  FileSystem& files_;
  mutable absl::Mutex mu_;
  std::shared_ptr<const ConstantValues> values_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CONSTANT_STORE_H_

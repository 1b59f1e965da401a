#ifndef SLUICE_WORKER_TORCH_REMOTE_ERROR_H_
#define SLUICE_WORKER_TORCH_REMOTE_ERROR_H_

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// RemoteOptimizer throws it where other code returns an absl::Status, since users of LibTorch
// expect exceptions. status() is that status, and what() is its message.
class RemoteError : public std::runtime_error {
 public:
  explicit RemoteError(absl::Status status)
      : std::runtime_error(std::string(status.message())), status_(std::move(status)) {}

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw RemoteError(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_REMOTE_ERROR_H_

// Turns exceptions of LibTorch, of RemoteOptimizer and of a user's code into statuses.

#ifndef SLUICE_WORKER_TORCH_GUARDED_H_
#define SLUICE_WORKER_TORCH_GUARDED_H_

#include <c10/util/Exception.h>

#include <exception>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/torch/remote_error.h"

namespace sluice {

// Calls `body`, which must return a value, and returns its result. If it throws, returns a status:
// that of a RemoteError, INVALID_ARGUMENT for std::invalid_argument, INTERNAL for any other
// std::exception.
template <typename Body>
auto Guarded(Body body) -> absl::StatusOr<decltype(body())> {
  try {
    return body();
  } catch (const RemoteError& error) {
    return error.status();
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_GUARDED_H_

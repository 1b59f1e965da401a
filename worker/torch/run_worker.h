// How a worker's program ends.

#ifndef SLUICE_WORKER_TORCH_RUN_WORKER_H_
#define SLUICE_WORKER_TORCH_RUN_WORKER_H_

#include <functional>

#include "absl/strings/string_view.h"

namespace sluice {

// Runs `train`, the part of a worker's program that makes a RemoteOptimizer and calls it. If that
// throws, prints why after the program's name, unless another rank of its launch does. Returns the
// exit code for main(), which ExitCodeOf() in common/launch/failure.h defines: 7 if the server has
// ended the job because training diverged. A program that lets a RemoteError leave main() is
// aborted instead, and --max-restarts starts it again.
int RunWorker(absl::string_view program, const std::function<void()>& train);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_RUN_WORKER_H_

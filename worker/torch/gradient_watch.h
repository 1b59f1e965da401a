// Reports during backward which ranges of the flat gradient are complete, so that the optimizer can
// push them early.
//
// A parameter's gradient is complete when autograd has accumulated it. That happens once in each
// backward, and the last layers come first. The watch joins neighbouring ranges, and reports parts
// of kChunkElements (1 MiB). A part that was reported has "left": from then on it must not change.
// The watch does not report what is smaller: step() pushes it. It does not watch gradients that are
// not views (see FlatModel): step() pushes them, too.

#ifndef SLUICE_WORKER_TORCH_GRADIENT_WATCH_H_
#define SLUICE_WORKER_TORCH_GRADIENT_WATCH_H_

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/torch/flat_model.h"

namespace sluice {

// Only the thread that calls backward may use it. RemoteOptimizer owns it.
class GradientWatch {
 public:
  // Is called when a part leaves: `count` elements of the flat gradient, from `offset` on. Runs
  // inside backward, on its thread.
  using Leave = std::function<void(uint64_t offset, uint64_t count)>;

  // Watches `model` until the destructor runs. `model` must outlive it.
  GradientWatch(const FlatModel& model, Leave leave);
  ~GradientWatch();

  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  // Starts a new gradient: no part has left. Call it before the next backward.
  void Reset();

  // Whether a part has left since the last Reset().
  bool any_left() const { return any_left_; }

  // Call it if the gradient at `offset` changed after it left. Throws std::logic_error, which names
  // the parameter. If autograd itself adds to a gradient that has left, backward() throws this
  // error without such a call.
  [[noreturn]] void ThrowChanged(uint64_t offset);
  // Throws the error of ThrowChanged() again, if it was thrown since the last Reset().
  void Check() const;

 private:
  class Hook;

  struct Watched {
    GradientView view;
    std::shared_ptr<torch::autograd::Node> accumulator;  // the parameter holds it weakly
    uintptr_t hook = 0;
    bool complete = false;
    bool left = false;  // at least a part of the gradient has left
  };

  void NoteComplete(size_t index);
  void NoteReady(uint64_t begin, uint64_t end);
  void LetLeave(uint64_t begin, uint64_t end);

  const Leave leave_;
  std::vector<Watched> watched_;        // in the layout's order
  std::map<uint64_t, uint64_t> ready_;  // begin -> end of runs that are complete and have not left
  bool any_left_ = false;
  std::string changed_;  // the parameter whose gradient changed after it left; empty: none
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_GRADIENT_WATCH_H_

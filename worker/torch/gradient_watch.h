// Tells during backward which ranges of the flat gradient are complete, so that they can leave.
//
// A parameter's gradient is complete when autograd has accumulated it, which it does once in a
// backward: the last layers' first. Neighbouring ranges are told together, about 1 MiB at a time;
// what is left of them when backward is over is told nobody: it leaves with step().

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

// To be used by the thread that calls backward.
class GradientWatch {
 public:
  // Told of `count` elements from `offset` on, which may leave.
  using Leave = std::function<void(uint64_t offset, uint64_t count)>;

  // Watches `model`, which outlives it, for as long as it lives.
  GradientWatch(const FlatModel& model, Leave leave);
  ~GradientWatch();

  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  // The next backward begins a new gradient.
  void Reset();

  // Whether something has left since the last Reset().
  bool any_left() const { return any_left_; }

  // Throws std::logic_error: the gradient that begins at or before `offset` is not what it was when
  // it left. From then on, and if backward was told so, Check() throws it again until Reset().
  [[noreturn]] void ThrowChanged(uint64_t offset);
  void Check() const;

 private:
  class Hook;

  struct Watched {
    GradientView view;
    std::shared_ptr<torch::autograd::Node> accumulator;  // the parameter holds it weakly
    uintptr_t hook = 0;
    bool complete = false;
    bool left = false;  // at least a part of it
  };

  void NoteComplete(size_t index);
  void NoteReady(uint64_t begin, uint64_t end);
  void LetLeave(uint64_t begin, uint64_t end);

  const Leave leave_;
  std::vector<Watched> watched_;
  std::map<uint64_t, uint64_t> ready_;  // begin -> end of runs that are complete and have not left
  bool any_left_ = false;
  std::string changed_;  // the parameter whose gradient was; empty: none
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_GRADIENT_WATCH_H_

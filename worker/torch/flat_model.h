// A LibTorch module as one flat vector: its parameters, and their gradients, become views of two
// buffers.
//
// Parameters that require gradients are PARAMETER ranges. Floating-point buffers (BatchNorm's
// running statistics) and frozen parameters are STATISTIC ranges: their "gradient" is their value.
// Integer buffers (BatchNorm's num_batches_tracked) stay with the module. A tensor that is not
// float32, or not on the CPU, cannot be a view: it is converted and copied at every step. A tensor
// with several names (tied parameters) has one range, under the first of them.

#ifndef SLUICE_WORKER_TORCH_FLAT_MODEL_H_
#define SLUICE_WORKER_TORCH_FLAT_MODEL_H_

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

// A parameter whose gradient is a view: autograd writes it into the buffer that is pushed.
struct GradientView {
  std::string name;
  torch::Tensor parameter;  // the module's own
  torch::Tensor gradient;   // its range of the flat gradient, in its shape
  uint64_t offset = 0;      // of the range
  uint64_t length = 0;
};

// Only the thread that trains the module may use it. The module must outlive it. The constructor
// moves the module's tensors into other memory and keeps their values, so create optimizers of
// torch::optim after the FlatModel, not before.
class FlatModel {
 public:
  // Throws std::invalid_argument if the module has nothing to train, breaks Layout's rules, or has
  // two tensors in the same memory; the module is then as it was.
  explicit FlatModel(torch::nn::Module& module);

  const Layout& layout() const { return layout_; }

  // The vector of all values; the module's tensors are views of it. After writing it, call
  // ScatterValues(), which copies the values to those tensors that cannot be views.
  absl::Span<float> values();
  void ScatterValues();

  // Returns what a push sends: the gradients of parameters and the values of statistics. If
  // autograd or the user replaced a gradient view by another tensor, its contents are copied in.
  // The gradient of a parameter that has none is 0.
  SharedFloats GatherGradients();

  // In the layout's order.
  std::vector<GradientView> gradient_views() const;
  // Returns the same buffer as GatherGradients(), without copying anything into it.
  SharedFloats shared_gradients() const;

  // Copies the tensors that are not views into values(), and returns it. Call it after changing the
  // module's parameters.
  absl::Span<float> GatherValues();

  // Returns values() for a push that sends parameters instead of gradients.
  SharedFloats shared_values();

  // The shared memory that holds the gradients, so that a server on this node can read them there.
  // Null if the system has no shared memory.
  const std::shared_ptr<const SharedMemory>& gradient_memory() const { return gradient_memory_; }

  // Zeroes the gradients and makes them views again.
  void ZeroGradients();

 private:
  struct Member {
    torch::Tensor tensor;       // the module's own
    torch::Tensor value;        // its range of values_, in its shape
    torch::Tensor gradient;     // its range of gradients_, in its shape
    bool is_parameter = false;  // else a statistic
    bool is_view = false;       // tensor shares value's memory
  };

  void Add(const std::string& name, const torch::Tensor& tensor, bool is_parameter,
           std::vector<LayoutRange>& ranges);
  bool IsKnown(const std::string& name, const torch::Tensor& tensor,
               const std::vector<LayoutRange>& ranges) const;
  void Bind(const std::vector<LayoutRange>& ranges);

  Layout layout_;
  std::vector<Member> members_;  // in the layout's order
  torch::Tensor values_;
  std::shared_ptr<const SharedMemory> gradient_memory_;
  torch::Tensor gradients_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_FLAT_MODEL_H_

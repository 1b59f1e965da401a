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

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"

namespace sluice {

// A parameter whose gradient autograd adds up where it is sent from.
struct GradientView {
  std::string name;
  torch::Tensor parameter;  // the module's own
  torch::Tensor gradient;   // its range of the flat gradient, in its shape
  uint64_t offset = 0;      // of the range
  uint64_t length = 0;
};

// To be used by the thread that trains the module, which outlives it. The module's tensors keep
// their values, but change their memory: make optimizers of LibTorch's own after this, not before.
class FlatModel {
 public:
  // Throws std::invalid_argument if the module has nothing to train, breaks Layout's rules, or has
  // two tensors in the same memory; the module is then as it was.
  explicit FlatModel(torch::nn::Module& module);

  const Layout& layout() const { return layout_; }

  // The vector the module's parameters are views of. Call ScatterValues() after writing it, for the
  // sake of those that are not.
  absl::Span<float> values();
  void ScatterValues();

  // What is to be pushed: the gradients of parameters, the values of statistics. Also takes in
  // gradients that autograd, or the user, put in place of the views; a parameter without a gradient
  // counts as 0.
  SharedFloats GatherGradients();

  // In the layout's order.
  std::vector<GradientView> gradient_views() const;
  // What GatherGradients() gathers, as it is.
  SharedFloats shared_gradients() const;

  // As values(), with those tensors that are no views copied in: for whoever changed the module.
  absl::Span<float> GatherValues();

  // values(), to be pushed in place of gradients.
  SharedFloats shared_values();

  // The memory of what GatherGradients() returns, for servers of this node to read it there; null
  // if the system gives none.
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

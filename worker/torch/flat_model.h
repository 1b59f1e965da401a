// A LibTorch module as one flat vector: its parameters, and their gradients, become views of two
// buffers.
//
// Parameters that require gradients are PARAMETER ranges. Floating-point buffers, such as
// BatchNorm's running statistics, and BatchNorm's num_batches_tracked are STATISTIC ranges: for
// these, a push sends the value itself, or what was added to it. All other tensors are constants of
// the layout: frozen parameters, and buffers that are integers, are empty, or have a number that is
// not finite. A tensor that is not float32, or not on the CPU, cannot be a view: it is converted
// and copied at every step. If such tensors have more than half of the elements, none is a view,
// and one buffer is both the vector of values and that of gradients: each tensor keeps its own
// elements, in 16 bits or on the GPU, and so does its gradient. So it is if the worker steps
// itself: one buffer carries gradients both ways, and those of float32 on the CPU are views of it.
// A tensor with several names (tied parameters) has one range, under its first name. A
// RemoteEmbedding is a table of the layout.

#ifndef SLUICE_WORKER_TORCH_FLAT_MODEL_H_
#define SLUICE_WORKER_TORCH_FLAT_MODEL_H_

#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_floats.h"
#include "common/tensor/shared_memory.h"
#include "worker/client/constant_memory.h"
#include "worker/torch/tables/remote_embedding.h"

namespace sluice {

// A parameter whose gradient is a view: autograd writes it into the buffer that is pushed.
struct GradientView {
  std::string name;
  torch::Tensor parameter;  // the module's own
  torch::Tensor gradient;   // its range of the flat gradient, in its shape
  uint64_t offset = 0;      // of the range
  uint64_t length = 0;
};

// Whether the gradient of `parameter` lies in the memory of `view`. A sparse gradient has no
// address, and the program may move one (`grad.set_data(...)`).
bool HasGradientIn(const torch::Tensor& view, const torch::Tensor& parameter);

// Only the thread that trains the module may use it. The module must outlive it. The constructor
// moves the module's tensors into other memory and keeps their values, so create optimizers of
// torch::optim after the FlatModel, not before. Do not move the module to another device or element
// type afterwards: its tensors would no longer be views.
class FlatModel {
 public:
  // What is pushed and pulled.
  enum class Carries {
    kGradientsAndValues,
    kValues,     // both ways, for local steps: there are two buffers
    kGradients,  // both ways: the worker steps itself, with the mean of all workers' gradients
  };

  // Throws std::invalid_argument if no parameter requires a gradient and there is no
  // RemoteEmbedding, if a tensor has an element type that is not a real floating-point type, if two
  // tensors share memory, or if Layout::Create() refuses the tensors. The module is then unchanged.
  explicit FlatModel(torch::nn::Module& module, Carries carries = Carries::kGradientsAndValues);

  const Layout& layout() const { return layout_; }
  // The module's embeddings that are on the server, in the order of the layout's tables. They are
  // in no vector.
  const std::vector<NamedEmbedding>& embeddings() const { return embeddings_; }

  // The memory of the layout's constants. If something was written there, call ScatterConstants(),
  // which copies it to the tensors that do not lie there: those on a GPU, or with gaps.
  ConstantMemory constants() const;
  void ScatterConstants();
  // Call it at each step. Warns, once, of a constant that the program changes: workers and
  // checkpoints do not get its new values. Looks at steps 1, 2, 4, 8 and so on, and at some
  // elements.
  void WarnOfChanges();

  // The vector of all values: layout().size() elements. After writing to it, call ScatterValues(),
  // which copies the values to the tensors that are not views. If has_one_buffer(), it holds the
  // values only from GatherValues(), or from what was written to it, to the next GatherGradients().
  absl::Span<float> values();
  // Whether values() and the gradients are the same memory.
  bool has_one_buffer() const { return one_buffer_; }
  void ScatterValues();

  // Returns what a push sends: the gradients of parameters and the values of statistics. If
  // autograd or the user replaced a gradient view by another tensor, its contents are copied in.
  // A parameter without a gradient gets zeros. The result is the FlatModel's own buffer, so the
  // next backward changes it.
  SharedFloats GatherGradients();

  // After a pull of Carries::kGradients: the vector's gradients become those of the parameters, and
  // its statistics those of the module.
  void ScatterGradients();

  // The parameters whose gradients are views, in the layout's order.
  std::vector<GradientView> gradient_views() const;
  // Return the same buffer as GatherGradients(), without copying anything into it.
  SharedFloats shared_gradients() const;
  absl::Span<float> gradients();

  // Copies the tensors that are not views into values(), and returns it. Call it after something
  // other than this class has changed the module's tensors, and before values() is read.
  absl::Span<float> GatherValues();

  // Returns values() for a push that sends parameters instead of gradients.
  SharedFloats shared_values();

  // The shared memory that holds the gradients, so that a server on this node can read them there.
  // Null if the system has no shared memory.
  const std::shared_ptr<const SharedMemory>& gradient_memory() const { return gradient_memory_; }

  // Throws std::invalid_argument, which names the tensor, if a parameter or buffer of the module
  // was added, removed or replaced, or lies in other memory, since this was made: the server would
  // not train it. A class that assigns to its own handle of a tensor (`ema = 0.9 * ema`) replaces
  // no tensor of the module, which nobody can see: use ema.copy_().
  void CheckTensors() const;

  // Sets all gradients to 0, and makes them views again where they can be.
  void ZeroGradients();

 private:
  struct Member {
    torch::Tensor tensor;       // the module's own
    torch::Tensor value;        // its range of values_, in its shape
    torch::Tensor gradient;     // its range of gradients_, in its shape
    bool is_parameter = false;  // false: a statistic
    bool is_view = false;       // tensor shares value's memory
    bool gradient_is_view = false;
  };

  struct Constant {
    torch::Tensor tensor;  // the module's own
    torch::Tensor memory;  // the same, or its copy: contiguous, on the CPU
    torch::Tensor sample;  // some elements, as they were in ScatterConstants()
  };

  using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

  // The tensors that have a range, and the range in which each piece of memory lies.
  struct Seen {
    absl::flat_hash_set<const void*> tensors;
    absl::flat_hash_set<const void*> constants;
    absl::flat_hash_map<const void*, size_t> memory;
  };

  void Add(const std::string& name, const torch::Tensor& tensor, bool is_parameter,
           std::vector<LayoutRange>& ranges, Seen& seen);
  void AddConstant(const std::string& name, const torch::Tensor& tensor,
                   const std::vector<LayoutRange>& ranges, std::vector<ConstantTensor>& constants,
                   Seen& seen);
  static bool IsKnown(const std::string& name, const torch::Tensor& tensor,
                      const std::vector<LayoutRange>& ranges, Seen& seen);
  static torch::Tensor ValueOf(const Member& member);
  void ChooseViews();
  void Bind(const std::vector<LayoutRange>& ranges);

  const torch::nn::Module& module_;
  const Carries carries_;
  NamedTensors tensors_;  // that it had at first
  Layout layout_;
  std::vector<NamedEmbedding> embeddings_;
  std::vector<Member> members_;      // in the layout's order
  std::vector<Constant> constants_;  // likewise
  uint64_t looks_ = 0;               // of WarnOfChanges()
  bool warned_ = false;
  bool one_buffer_ = false;
  torch::Tensor values_;
  std::shared_ptr<const SharedMemory> gradient_memory_;
  torch::Tensor gradients_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_FLAT_MODEL_H_

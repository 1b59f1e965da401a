#include "worker/torch/flat_model.h"

#include <glog/logging.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/torch/tables/floats.h"
#include "worker/torch/tensor_types.h"

namespace sluice {
namespace {

DataType DataTypeOf(const std::string& name, const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return DataType::kFloat32;
    case torch::kFloat64:
      return DataType::kFloat64;
    case torch::kFloat16:
      return DataType::kFloat16;
    case torch::kBFloat16:
      return DataType::kBFloat16;
    case torch::kInt64:
      return DataType::kInt64;
    default:
      throw std::invalid_argument(absl::StrCat("parameter \"", name, "\" has element type ",
                                               c10::toString(tensor.scalar_type()),
                                               ", expected a real floating-point type"));
  }
}

// A count of batches, under the name that all modules of batch normalization give it.
bool IsCount(const std::string& name, const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kInt64 && tensor.numel() == 1 &&
         absl::EndsWith(name, "num_batches_tracked");
}

// Whether workers can average the buffer in a vector of float32.
bool IsStatistic(const std::string& name, const torch::Tensor& tensor) {
  if (IsCount(name, tensor)) return true;
  return tensor.is_floating_point() && tensor.numel() > 0 &&
         torch::isfinite(tensor.to(torch::kFloat32)).all().item<bool>();
}

// Whether some elements lie at the same place, as those of expand() do.
bool Repeats(const torch::Tensor& tensor) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.stride(i) == 0 && tensor.size(i) > 1) return true;
  }
  return false;
}

// At most 1024 elements.
torch::Tensor SampleOf(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().flatten();
  return flat.slice(0, 0, flat.numel(), std::max<int64_t>(1, flat.numel() / 1024)).clone();
}

bool CanBeView(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat32 && tensor.device().is_cpu();
}

// A vector of zeroes, in `memory` unless that is null.
torch::Tensor FlatIn(const std::shared_ptr<const SharedMemory>& memory, uint64_t size) {
  const auto elements = static_cast<int64_t>(size);
  if (memory == nullptr) return Floats({elements});
  return torch::from_blob(
      memory->floats().data(), {elements}, [memory](void*) {}, torch::kFloat32);
}

// A module's parameters and buffers are asked for by name, which LibTorch copies: 0.3 us each.
std::vector<std::pair<std::string, torch::Tensor>> TensorsOf(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

SharedFloats ShareFlat(const torch::Tensor& flat) {
  return {FloatsOf(flat), std::make_shared<const torch::Tensor>(flat)};
}

}  // namespace

bool HasGradientIn(const torch::Tensor& view, const torch::Tensor& parameter) {
  const torch::Tensor& gradient = parameter.grad();
  return gradient.defined() && gradient.layout() == torch::kStrided &&
         gradient.data_ptr() == view.data_ptr();
}

FlatModel::FlatModel(torch::nn::Module& module, Carries carries)
    : module_(module), carries_(carries) {
  std::vector<LayoutRange> ranges;
  Seen seen;
  std::vector<ConstantTensor> constants;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad()) Add(item.key(), item.value(), true, ranges, seen);
  }
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) {
      AddConstant(item.key(), item.value(), ranges, constants, seen);
    }
  }
  for (const auto& item : module.named_buffers()) {
    const bool is_statistic = IsStatistic(item.key(), item.value());
    if (is_statistic) Add(item.key(), item.value(), false, ranges, seen);
    // The vector has the first value of 64 bits in float32 only.
    if (!is_statistic || item.value().scalar_type() == torch::kFloat64) {
      AddConstant(item.key(), item.value(), ranges, constants, seen);
    }
  }
  const bool trains = std::any_of(members_.begin(), members_.end(),
                                  [](const Member& member) { return member.is_parameter; });
  embeddings_ = EmbeddingsOf(module);
  if (!trains && embeddings_.empty()) {
    throw std::invalid_argument(
        "the model has no parameter that requires a gradient, and no RemoteEmbedding; expected at "
        "least one of either");
  }
  std::vector<TableSpec> tables;
  for (const NamedEmbedding& embedding : embeddings_) {
    tables.push_back(embedding.module->SpecOf(embedding.name));
  }
  absl::StatusOr<Layout> layout = Layout::Create(ranges, std::move(tables), std::move(constants));
  if (!layout.ok()) throw std::invalid_argument(std::string(layout.status().message()));
  layout_ = *std::move(layout);
  ChooseViews();
  Bind(ranges);
  tensors_ = TensorsOf(module);
}

void FlatModel::Add(const std::string& name, const torch::Tensor& tensor, bool is_parameter,
                    std::vector<LayoutRange>& ranges, Seen& seen) {
  if (IsKnown(name, tensor, ranges, seen)) return;
  LayoutRange range;
  range.name = name;
  for (const int64_t size : tensor.sizes()) range.shape.push_back(static_cast<uint32_t>(size));
  range.kind = is_parameter ? RangeKind::kParameter : RangeKind::kStatistic;
  range.dtype = DataTypeOf(name, tensor);
  range.offset = ranges.empty() ? 0 : ranges.back().end();
  range.length = static_cast<uint64_t>(tensor.numel());
  ranges.push_back(std::move(range));
  Member member;
  member.tensor = tensor;
  member.is_parameter = is_parameter;
  members_.push_back(std::move(member));
}

void FlatModel::AddConstant(const std::string& name, const torch::Tensor& tensor,
                            const std::vector<LayoutRange>& ranges,
                            std::vector<ConstantTensor>& constants, Seen& seen) {
  // Of a type without a name, each worker keeps its own.
  const absl::string_view type =
      tensor.layout() == torch::kStrided ? NameOf(tensor.scalar_type()) : "";
  if (type.empty() || !seen.constants.insert(tensor.unsafeGetTensorImpl()).second) return;
  const auto trained =
      tensor.numel() == 0 ? seen.memory.end() : seen.memory.find(tensor.data_ptr());
  if (trained != seen.memory.end() && !members_[trained->second].tensor.is_same(tensor)) {
    throw std::invalid_argument(absl::StrCat(
        "\"", name, "\" is not trained and shares memory with \"", ranges[trained->second].name,
        "\", which would change it; give it memory of its own"));
  }
  constants.push_back({name, {tensor.sizes().begin(), tensor.sizes().end()}, std::string(type)});
  const torch::Tensor values = tensor.detach().resolve_conj().resolve_neg();
  constants_.push_back({tensor, values.to(torch::kCPU).contiguous(), {}});
}

// Whether the tensor has a range already, under another name.
bool FlatModel::IsKnown(const std::string& name, const torch::Tensor& tensor,
                        const std::vector<LayoutRange>& ranges, Seen& seen) {
  if (!seen.tensors.insert(tensor.unsafeGetTensorImpl()).second) return true;
  if (tensor.numel() == 0) return false;
  const auto [first, is_new] = seen.memory.emplace(tensor.data_ptr(), ranges.size());
  if (is_new) return false;
  throw std::invalid_argument(
      absl::StrCat("\"", name, "\" shares memory with \"", ranges[first->second].name,
                   "\" but is another tensor; to tie them, register one module under both names"));
}

// A view needs no memory beside the vectors of values and of gradients; a tensor that is none has a
// value and a gradient of its own, and then one vector is enough to carry both in turn.
void FlatModel::ChooseViews() {
  int64_t copied = 0;
  for (const Member& member : members_) {
    copied += CanBeView(member.tensor) ? 0 : member.tensor.numel();
  }
  const bool steps_itself = carries_ == Carries::kGradients;
  const bool one_is_enough = carries_ == Carries::kGradientsAndValues &&
                             static_cast<uint64_t>(copied) > layout_.size() / 2;
  one_buffer_ = steps_itself || one_is_enough;
  for (Member& member : members_) {
    member.is_view = !one_buffer_ && CanBeView(member.tensor);
    member.gradient_is_view = !one_is_enough && CanBeView(member.tensor);
  }
}

void FlatModel::Bind(const std::vector<LayoutRange>& ranges) {
  const torch::NoGradGuard no_grad;
  auto memory = SharedMemory::Create(layout_.size());
  if (memory.ok() && layout_.size() > 0) gradient_memory_ = *std::move(memory);
  gradients_ = FlatIn(gradient_memory_, layout_.size());
  values_ = one_buffer_ ? gradients_ : FlatIn(nullptr, layout_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    const auto offset = static_cast<int64_t>(ranges[i].offset);
    const auto length = static_cast<int64_t>(ranges[i].length);
    member.value = values_.narrow(0, offset, length).view(member.tensor.sizes());
    member.gradient = gradients_.narrow(0, offset, length).view(member.tensor.sizes());
    if (!one_buffer_) member.value.copy_(member.tensor);
    if (member.is_view) member.tensor.set_data(member.value);
  }
  ZeroGradients();
}

void FlatModel::CheckTensors() const {
  const NamedTensors now = TensorsOf(module_);
  for (size_t i = 0; i < std::max(now.size(), tensors_.size()); ++i) {
    if (i < std::min(now.size(), tensors_.size()) && now[i].second.is_same(tensors_[i].second)) {
      continue;
    }
    throw std::invalid_argument(absl::StrCat(
        "\"", i < now.size() ? now[i].first : tensors_[i].first,
        "\" was added, removed or replaced after the model was given to Sluice, and the server "
        "would "
        "not train what is there now; register all tensors before, and set values with copy_()"));
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const bool is_there =
        member.tensor.sizes() == member.value.sizes() &&
        (!member.is_view || (member.tensor.data_ptr() == member.value.data_ptr() &&
                             member.tensor.strides() == member.value.strides()));
    if (is_there) continue;
    throw std::invalid_argument(absl::StrCat(
        "\"", layout_.ranges()[i].name,
        "\" lies in other memory than when the model was given to Sluice, so the server would not "
        "train it; move the model (to()) and set its shapes before, and set values with copy_()"));
  }
}

absl::Span<float> FlatModel::values() { return FloatsOf(values_); }

absl::Span<float> FlatModel::gradients() { return FloatsOf(gradients_); }

SharedFloats FlatModel::shared_gradients() const { return ShareFlat(gradients_); }

std::vector<GradientView> FlatModel::gradient_views() const {
  std::vector<GradientView> views;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (!member.is_parameter || !member.gradient_is_view) continue;
    const LayoutRange& range = layout_.ranges()[i];
    views.push_back({range.name, member.tensor, member.gradient, range.offset, range.length});
  }
  return views;
}

ConstantMemory FlatModel::constants() const {
  ConstantMemory memory;
  for (const Constant& constant : constants_) {
    memory.emplace_back(static_cast<char*>(constant.memory.data_ptr()), constant.memory.nbytes());
  }
  return memory;
}

void FlatModel::ScatterConstants() {
  const torch::NoGradGuard no_grad;
  for (Constant& constant : constants_) {
    if (Repeats(constant.tensor)) {
      constant.tensor.set_data(constant.memory.to(constant.tensor.device()));
    } else if (constant.tensor.data_ptr() != constant.memory.data_ptr()) {
      constant.tensor.copy_(constant.memory);
    }
    constant.sample = SampleOf(constant.tensor);
  }
}

void FlatModel::WarnOfChanges() {
  ++looks_;
  const bool is_power_of_two = (looks_ & (looks_ - 1)) == 0;
  if (warned_ || !is_power_of_two) return;
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < constants_.size() && !warned_; ++i) {
    const Constant& constant = constants_[i];
    if (!constant.sample.defined() || SampleOf(constant.tensor).equal(constant.sample)) continue;
    warned_ = true;
    LOG(WARNING)
        << "\"" << layout_.constants()[i].name
        << "\" is not trained, and the program changes it: this worker keeps its own value, "
        << "and checkpoints keep the value that it had when it was given to Sluice. "
        << "Register it as a buffer of real and finite numbers, and workers average it";
  }
}

SharedFloats FlatModel::shared_values() { return ShareFlat(values_); }

void FlatModel::ScatterValues() {
  const torch::NoGradGuard no_grad;
  for (Member& member : members_) {
    if (!member.is_view) member.tensor.copy_(ValueOf(member));
  }
}

// A count may be the mean of several workers' counts. What a statistic of 64 bits has beyond
// float32 stays, if that is equal.
torch::Tensor FlatModel::ValueOf(const Member& member) {
  if (member.tensor.scalar_type() == torch::kInt64) return member.value.round();
  if (member.is_parameter || member.tensor.scalar_type() != torch::kFloat64) return member.value;
  const torch::Tensor value = member.value.to(member.tensor.device());
  return torch::where(member.tensor.to(torch::kFloat32) == value, member.tensor,
                      value.to(torch::kFloat64));
}

absl::Span<float> FlatModel::GatherValues() {
  const torch::NoGradGuard no_grad;
  for (Member& member : members_) {
    if (!member.is_view) member.value.copy_(member.tensor);
  }
  return values();
}

SharedFloats FlatModel::GatherGradients() {
  const torch::NoGradGuard no_grad;
  for (Member& member : members_) {
    if (!member.is_parameter) {
      member.gradient.copy_(member.tensor);
      continue;
    }
    const torch::Tensor& grad = member.tensor.grad();
    if (!grad.defined()) {
      member.gradient.zero_();
    } else if (!HasGradientIn(member.gradient, member.tensor)) {
      member.gradient.copy_(grad.layout() == torch::kStrided ? grad : grad.to_dense());
    }
  }
  return ShareFlat(gradients_);
}

void FlatModel::ScatterGradients() {
  const torch::NoGradGuard no_grad;
  for (Member& member : members_) {
    if (!member.is_parameter) {
      member.tensor.copy_(ValueOf(member));
    } else if (!member.gradient_is_view) {
      member.tensor.mutable_grad() = member.gradient.to(
          member.tensor.device(), member.tensor.scalar_type(), /*non_blocking=*/false,
          /*copy=*/true);
    } else if (!HasGradientIn(member.gradient, member.tensor)) {
      member.tensor.mutable_grad() = member.gradient.detach();
    }
  }
}

// GatherGradients() writes every element of a buffer that also carries values.
void FlatModel::ZeroGradients() {
  if (!one_buffer_ || carries_ == Carries::kGradients) gradients_.zero_();
  for (Member& member : members_) {
    if (!member.is_parameter) continue;
    if (member.gradient_is_view) {
      // Another tensor of the same memory, which the program may move.
      if (!HasGradientIn(member.gradient, member.tensor)) {
        member.tensor.mutable_grad() = member.gradient.detach();
      }
    } else if (member.tensor.grad().defined()) {
      member.tensor.mutable_grad() = torch::Tensor();
    }
  }
}

}  // namespace sluice

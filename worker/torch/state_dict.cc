#include "worker/torch/state_dict.h"

#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

torch::ScalarType TypeOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat64:
      return torch::kFloat64;
    case DataType::kFloat16:
      return torch::kFloat16;
    case DataType::kBFloat16:
      return torch::kBFloat16;
    case DataType::kFloat32:
      break;
  }
  return torch::kFloat32;
}

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, " ", what));
}

absl::StatusOr<std::map<std::string, torch::Tensor>> ReadTensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::map<std::string, torch::Tensor> tensors;
  try {
    for (const auto& entry : torch::pickle_load(bytes).toGenericDict()) {
      tensors[entry.key().toStringRef()] = entry.value().toTensor();
    }
  } catch (const std::exception&) {
    return Wrong(path,
                 "is no dict of tensors; write it with torch.save(dict(model.state_dict()), path)");
  }
  return tensors;
}

}  // namespace

absl::Status SaveStateDict(const Layout& layout, absl::Span<const float> values,
                           const std::string& path) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const LayoutRange& range : layout.ranges()) {
    const std::vector<int64_t> shape(range.shape.begin(), range.shape.end());
    // Only read, and copied by to() or clone().
    auto* const begin = const_cast<float*>(values.data() + range.offset);
    const torch::Tensor view = torch::from_blob(begin, shape, torch::kFloat32);
    dict.insert(range.name, view.clone().to(TypeOf(range.dtype)));
  }
  const std::vector<char> bytes = torch::pickle_save(dict);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status LoadStateDict(const std::string& path, torch::nn::Module& module) {
  auto tensors = ReadTensors(path);
  if (!tensors.ok()) return tensors.status();
  std::map<std::string, torch::Tensor> own;
  for (const auto& item : module.named_parameters()) own[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) own[item.key()] = item.value();
  for (const auto& tensor : *tensors) {
    if (own.count(tensor.first) > 0) continue;
    return Wrong(path,
                 absl::StrCat("has a tensor \"", tensor.first, "\", which the model has not"));
  }
  const torch::NoGradGuard no_grad;
  for (auto& item : own) {
    const auto found = tensors->find(item.first);
    if (found == tensors->end()) {
      if (!item.second.is_floating_point()) continue;
      return Wrong(path, absl::StrCat("lacks the model's tensor \"", item.first, "\""));
    }
    if (found->second.sizes() != item.second.sizes()) {
      return Wrong(path, absl::StrCat("has another shape for \"", item.first, "\" than the model"));
    }
    item.second.copy_(found->second);
  }
  return absl::OkStatus();
}

}  // namespace sluice

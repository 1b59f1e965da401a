#include "worker/torch/state_dict.h"

#include <torch/nn/module.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/checkpoint/reading/checkpoint_reader.h"
#include "common/checkpoint/reading/part_file.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "common/tensor/float_buffer.h"
#include "worker/torch/tensor_types.h"

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
    case DataType::kInt64:
      return torch::kInt64;
    case DataType::kFloat32:
      break;
  }
  return torch::kFloat32;
}

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, " ", what));
}

using Tensors = std::map<std::string, torch::Tensor>;

Tensors NamedTensors(const c10::impl::GenericDict& dict) {
  Tensors tensors;
  for (const auto& entry : dict) tensors[entry.key().toStringRef()] = entry.value().toTensor();
  return tensors;
}

// ---- Files of torch.save() ----

absl::StatusOr<Tensors> DecodePickle(const std::string& path, const std::vector<char>& bytes) {
  try {
    return NamedTensors(torch::pickle_load(bytes).toGenericDict());
  } catch (const std::exception& error) {
    // Python writes the one entry of a dict by an operation of its own, which LibTorch's reader of
    // pickles lacks: 's', 115.
    if (absl::StrContains(error.what(), "Unknown opcode") &&
        absl::StrContains(error.what(), ": 115")) {
      return Wrong(path,
                   "is a dict of one tensor, which LibTorch cannot read; write it with "
                   "safetensors.torch.save_file(model.state_dict(), path)");
    }
    return Wrong(
        path, "is not a dict of tensors; write it with torch.save(dict(model.state_dict()), path)");
  }
}

// ---- Safetensors ----

bool IsSafeTensors(absl::string_view begin) {
  return begin.size() > kSafeTensorsPrefix && begin[kSafeTensorsPrefix] == '{' &&
         !absl::StartsWith(begin, "PK");
}

// Reads what other programs have written. Leaves out types that LibTorch does not have.
absl::StatusOr<Tensors> ReadSafeTensors(const ReadableFile& file) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  const auto header = reader.ReadHeader();
  if (!header.ok()) return header.status();
  Tensors tensors;
  for (const SafeTensor& tensor : header->tensors) {
    const auto type = TypeNamed(tensor.dtype);
    const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    const int64_t size = static_cast<int64_t>(tensor.end - tensor.begin);
    torch::Tensor values =
        type.has_value() ? torch::empty(shape, *type) : torch::empty({size}, torch::kUInt8);
    const absl::Status read = reader.Read(
        absl::MakeSpan(static_cast<char*>(values.data_ptr()), static_cast<size_t>(size)));
    if (!read.ok()) return read;
    if (type.has_value()) tensors.emplace(tensor.name, std::move(values));
  }
  return tensors;
}

// ---- Checkpoints ----

// The constants of a layout, whose bytes `values` has.
Tensors ConstantsOf(const Layout& layout, absl::string_view values) {
  Tensors tensors;
  for (const ConstantTensor& constant : layout.constants()) {
    const auto type = TypeNamed(constant.dtype);
    const absl::string_view bytes = values.substr(0, constant.bytes());
    values.remove_prefix(bytes.size());
    if (!type.has_value()) continue;
    torch::Tensor tensor =
        torch::empty(std::vector<int64_t>(constant.shape.begin(), constant.shape.end()), *type);
    if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
    tensors.emplace(constant.name, std::move(tensor));
  }
  return tensors;
}

// The tensors of a vector, each with the element type that it has in the workers' model, and the
// constants. A statistic that no batch has changed has the bits of its constant.
c10::impl::GenericDict TensorsOf(const Layout& layout, absl::Span<const float> values,
                                 absl::string_view constants) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  const Tensors not_trained = ConstantsOf(layout, constants);
  for (const auto& [name, tensor] : not_trained) dict.insert(name, tensor);
  for (const LayoutRange& range : layout.ranges()) {
    const std::vector<int64_t> shape(range.shape.begin(), range.shape.end());
    // The view is only read: clone() copies it.
    auto* const begin = const_cast<float*>(values.data() + range.offset);
    const torch::Tensor view = torch::from_blob(begin, shape, torch::kFloat32);
    const auto constant = not_trained.find(range.name);
    const bool is_unchanged =
        constant != not_trained.end() && constant->second.to(torch::kFloat32).equal(view);
    if (is_unchanged) continue;
    const torch::ScalarType type = TypeOf(range.dtype);
    const torch::Tensor value = type == torch::kInt64 ? view.round() : view.clone();
    dict.insert_or_assign(range.name, value.to(type));
  }
  return dict;
}

absl::StatusOr<Tensors> ReadCheckpointTensors(const std::string& where) {
  const auto reader = CheckpointReader::Open(RealFileSystem(), where);
  if (!reader.ok()) return reader.status();
  FloatBuffer values(reader->layout().size());
  const absl::Status read = reader->ReadParameters(values.span());
  if (!read.ok()) return read;
  const auto constants = reader->ReadConstants();
  if (!constants.ok()) return constants.status();
  return NamedTensors(TensorsOf(reader->layout(), values.span(), *constants));
}

// ---- Any file ----

absl::StatusOr<Tensors> ReadTensors(const std::string& path) {
  if (IsCheckpoint(RealFileSystem(), path)) return ReadCheckpointTensors(path);
  const auto file = RealFileSystem().Open(path);
  if (!file.ok()) return file.status();
  std::string begin(std::min<uint64_t>((*file)->size(), kSafeTensorsPrefix + 1), '\0');
  absl::Status read = (*file)->Read(0, absl::MakeSpan(begin));
  if (read.ok() && IsSafeTensors(begin)) {
    auto tensors = ReadSafeTensors(**file);
    return tensors.ok() ? tensors : InFile(path, tensors.status());
  }
  std::vector<char> bytes((*file)->size());
  if (read.ok()) read = (*file)->Read(0, absl::MakeSpan(bytes));
  if (!read.ok()) return read;
  return DecodePickle(path, bytes);
}

// ---- The model ----

Tensors TensorsOf(torch::nn::Module& module) {
  Tensors tensors;
  for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

// Whether each of the file's tensors can be copied to the model's own, so that none is copied
// before an error is found.
absl::Status CheckFits(const std::string& path, const Tensors& tensors, const Tensors& own) {
  for (const auto& tensor : tensors) {
    const std::string name = absl::StrCat("\"", tensor.first, "\"");
    const auto found = own.find(tensor.first);
    if (found == own.end() && !tensor.second.is_floating_point()) continue;
    if (found == own.end()) {
      return Wrong(path, absl::StrCat("has a tensor ", name, " that the model does not have"));
    }
    if (tensor.second.sizes() != found->second.sizes()) {
      return Wrong(path, absl::StrCat("has a tensor ", name, " whose shape is not the model's"));
    }
    const bool dense = tensor.second.layout() == torch::kStrided;
    const bool same_field = tensor.second.is_complex() == found->second.is_complex();
    if (!dense || !same_field || tensor.second.is_quantized()) {
      return Wrong(path, absl::StrCat("has a tensor ", name, " that is not dense and real"));
    }
  }
  for (const auto& item : own) {
    if (tensors.count(item.first) > 0 || !item.second.is_floating_point()) continue;
    return Wrong(path, absl::StrCat("lacks the model's tensor \"", item.first, "\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveStateDict(const Layout& layout, absl::Span<const float> values,
                           absl::string_view constants, const std::string& path) {
  const std::vector<char> bytes = torch::pickle_save(TensorsOf(layout, values, constants));
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status LoadStateDict(const std::string& path, torch::nn::Module& module) {
  const auto tensors = ReadTensors(path);
  if (!tensors.ok()) return tensors.status();
  const Tensors own = TensorsOf(module);
  const absl::Status fits = CheckFits(path, *tensors, own);
  if (!fits.ok()) return fits;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const auto found = tensors->find(name);
    if (found != tensors->end()) tensor.copy_(found->second);
  }
  return absl::OkStatus();
}

}  // namespace sluice

#include "worker/torch/state_dict.h"

#include <torch/nn/module.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/storage/safetensors.h"

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

using Tensors = std::map<std::string, torch::Tensor>;

// ---- Files of torch.save() ----

absl::StatusOr<Tensors> DecodePickle(const std::string& path, const std::vector<char>& bytes) {
  Tensors tensors;
  try {
    for (const auto& entry : torch::pickle_load(bytes).toGenericDict()) {
      tensors[entry.key().toStringRef()] = entry.value().toTensor();
    }
  } catch (const std::exception&) {
    return Wrong(
        path, "is not a dict of tensors; write it with torch.save(dict(model.state_dict()), path)");
  }
  return tensors;
}

// ---- Safetensors ----

// Names of a server's own tensors in its checkpoints; see
// server/durable/checkpoint/checkpoint_format.h.
constexpr char kServersPrefix[] = "sluice:";
constexpr char kChecksum[] = "sluice:checksum";

bool IsSafeTensors(absl::string_view bytes) {
  return bytes.size() > kSafeTensorsPrefix && bytes[kSafeTensorsPrefix] == '{' &&
         !absl::StartsWith(bytes, "PK");
}

absl::optional<torch::ScalarType> FloatTypeOf(const std::string& dtype) {
  if (dtype == "F32") return torch::kFloat32;
  if (dtype == "F64") return torch::kFloat64;
  if (dtype == "F16") return torch::kFloat16;
  if (dtype == "BF16") return torch::kBFloat16;
  return absl::nullopt;
}

// In the metadata of files of which several belong to one checkpoint; see
// server/durable/checkpoint/stripe_format.h.
constexpr char kState[] = "sluice";
constexpr char kStripe[] = "sluice:stripe";

// Several servers save a file without values and a file for each stripe.
absl::Status CheckHasValues(const SafeTensorsHeader& header) {
  const bool is_state = header.metadata.count(kState) > 0 && header.tensors.size() == 1;
  const bool is_stripe = header.metadata.count(kStripe) > 0;
  if (!is_state && !is_stripe) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(is_state ? "the values of this checkpoint are in the files of several servers"
                            : "it has one server's part of a checkpoint of several servers",
                   "; write them to one file with \"sluicectl checkpoint export "
                   "checkpoint-….safetensors model.pt\", and use that"));
}

absl::Status CheckChecksum(absl::string_view bytes, const SafeTensor& checksum) {
  const bool whole = checksum.end - checksum.begin == sizeof(uint64_t) &&
                     FromLittleEndian64(bytes.substr(bytes.size() - sizeof(uint64_t))) ==
                         Checksum(bytes.substr(0, bytes.size() - sizeof(uint64_t)));
  if (whole) return absl::OkStatus();
  return absl::DataLossError("its checksum does not match: bytes have changed since it was saved");
}

// Leaves out buffers that are not floating-point, as SaveStateDict() does.
absl::StatusOr<Tensors> DecodeSafeTensors(absl::string_view bytes) {
  const auto length = DecodeSafeTensorsPrefix(bytes.substr(0, kSafeTensorsPrefix), bytes.size());
  if (!length.ok()) return length.status();
  const absl::string_view json = bytes.substr(kSafeTensorsPrefix, *length);
  const absl::string_view data = bytes.substr(kSafeTensorsPrefix + *length);
  const auto header = DecodeSafeTensorsJson(json, data.size());
  if (!header.ok()) return header.status();
  const absl::Status has_values = CheckHasValues(*header);
  if (!has_values.ok()) return has_values;
  Tensors tensors;
  for (const SafeTensor& tensor : header->tensors) {
    if (tensor.name == kChecksum) {
      const absl::Status whole = CheckChecksum(bytes, tensor);
      if (!whole.ok()) return whole;
    }
    const auto type = FloatTypeOf(tensor.dtype);
    if (!type.has_value() || absl::StartsWith(tensor.name, kServersPrefix)) continue;
    const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    torch::Tensor values = torch::empty(shape, *type);
    std::memcpy(values.data_ptr(), data.data() + tensor.begin, tensor.end - tensor.begin);
    tensors.emplace(tensor.name, std::move(values));
  }
  return tensors;
}

absl::StatusOr<Tensors> ReadTensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const absl::string_view text(bytes.data(), bytes.size());
  if (!IsSafeTensors(text)) return DecodePickle(path, bytes);
  auto tensors = DecodeSafeTensors(text);
  if (tensors.ok()) return tensors;
  return absl::Status(tensors.status().code(),
                      absl::StrCat(path, ": ", tensors.status().message()));
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
    if (found == own.end()) {
      return Wrong(path, absl::StrCat("has a tensor ", name, " that the model does not have"));
    }
    if (tensor.second.sizes() != found->second.sizes()) {
      return Wrong(path, absl::StrCat("has a tensor ", name, " whose shape is not the model's"));
    }
    const bool dense = tensor.second.layout() == torch::kStrided;
    if (!dense || tensor.second.is_complex() || tensor.second.is_quantized()) {
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
                           const std::string& path) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const LayoutRange& range : layout.ranges()) {
    const std::vector<int64_t> shape(range.shape.begin(), range.shape.end());
    // The view is only read: clone() copies it.
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
  const auto tensors = ReadTensors(path);
  if (!tensors.ok()) return tensors.status();
  Tensors own = TensorsOf(module);
  const absl::Status fits = CheckFits(path, *tensors, own);
  if (!fits.ok()) return fits;
  const torch::NoGradGuard no_grad;
  for (const auto& tensor : *tensors) own[tensor.first].copy_(tensor.second);
  return absl::OkStatus();
}

}  // namespace sluice

#include "worker/connection/module/module_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "worker/connection/grpc/channel.h"

namespace sluice {
namespace {

constexpr size_t kMaxDims = 16;
constexpr int kMaxValues = 4096;  // tensors of a method's arguments or results

struct TypeInfo {
  ElementType type;
  v1::ElementType proto;
  size_t size;  // in bytes
};

constexpr TypeInfo kTypes[] = {
    {ElementType::kFloat32, v1::ELEMENT_FLOAT32, 4},
    {ElementType::kFloat64, v1::ELEMENT_FLOAT64, 8},
    {ElementType::kFloat16, v1::ELEMENT_FLOAT16, 2},
    {ElementType::kBFloat16, v1::ELEMENT_BFLOAT16, 2},
    {ElementType::kInt64, v1::ELEMENT_INT64, 8},
    {ElementType::kInt32, v1::ELEMENT_INT32, 4},
    {ElementType::kUint8, v1::ELEMENT_UINT8, 1},
    {ElementType::kBool, v1::ELEMENT_BOOL, 1},
};

const TypeInfo& InfoOf(ElementType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  return kTypes[0];
}

const TypeInfo* Find(v1::ElementType proto) {
  for (const TypeInfo& info : kTypes) {
    if (info.proto == proto) return &info;
  }
  return nullptr;
}

// The bytes that type and shape ask for; absent if the shape is not one, or asks for more than a
// message can have.
absl::optional<size_t> BytesOf(const TypeInfo& type, const std::vector<int64_t>& shape) {
  size_t bytes = type.size;  // as if no size were 0, since strides are as large
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) return absl::nullopt;
    empty |= size == 0;
    const auto factor = static_cast<size_t>(std::max<int64_t>(size, 1));
    if (bytes > kMaxTensorBytes / factor) return absl::nullopt;
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

bool HasOtherThanZeroAndOne(const std::string& bools) {
  return std::any_of(bools.begin(), bools.end(), [](char b) { return b != 0 && b != 1; });
}

absl::Status Bad(absl::string_view what) { return MakeError(Reason::kBadArgument, what); }

using TensorMessages = google::protobuf::RepeatedPtrField<v1::ModuleTensor>;

absl::StatusOr<std::vector<PlainTensor>> TensorsFrom(TensorMessages& messages) {
  std::vector<PlainTensor> tensors;
  for (v1::ModuleTensor& message : messages) {
    auto tensor = FromProto(std::move(message));
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

void Add(std::vector<PlainTensor> tensors, TensorMessages& messages) {
  for (PlainTensor& tensor : tensors) *messages.Add() = ToProto(std::move(tensor));
}

}  // namespace

v1::ModuleTensor ToProto(PlainTensor tensor) {
  v1::ModuleTensor message;
  message.set_type(InfoOf(tensor.type).proto);
  message.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
  message.set_requires_grad(tensor.requires_grad);
  message.set_data(std::move(tensor.data));
  return message;
}

absl::StatusOr<PlainTensor> FromProto(v1::ModuleTensor&& message) {
  const TypeInfo* const type = Find(message.type());
  if (type == nullptr) {
    return Bad(absl::StrCat("a tensor's element type is ", static_cast<int>(message.type()),
                            ", expected one of module_server.proto"));
  }
  PlainTensor tensor;
  tensor.type = type->type;
  tensor.shape.assign(message.shape().begin(), message.shape().end());
  tensor.requires_grad = message.requires_grad();
  tensor.data = std::move(*message.mutable_data());
  const absl::Status sound = CheckSound(tensor);
  if (!sound.ok()) return sound;
  return tensor;
}

absl::Status CheckSound(const PlainTensor& tensor) {
  if (tensor.shape.size() > kMaxDims) {
    return Bad(absl::StrCat("a tensor has ", tensor.shape.size(), " dimensions, expected at most ",
                            kMaxDims));
  }
  const TypeInfo& type = InfoOf(tensor.type);
  const absl::optional<size_t> bytes = BytesOf(type, tensor.shape);
  if (!bytes.has_value() || *bytes != tensor.data.size()) {
    return Bad(absl::StrCat("a tensor of shape (", absl::StrJoin(tensor.shape, ", "),
                            ") and elements of ", type.size, " bytes has ", tensor.data.size(),
                            " bytes; expected as many as its shape says, and at most ",
                            kMaxTensorBytes));
  }
  if (tensor.type == ElementType::kBool && HasOtherThanZeroAndOne(tensor.data)) {
    return Bad("a tensor of bool has a byte above 1");
  }
  return absl::OkStatus();
}

v1::ForwardModule ToProto(ForwardCall call) {
  v1::ForwardModule message;
  message.set_call(call.call);
  message.set_training(call.training);
  message.set_keep(call.keep);
  Add(std::move(call.inputs), *message.mutable_inputs());
  return message;
}

absl::StatusOr<ForwardCall> FromProto(v1::ForwardModule&& message) {
  const auto inputs = static_cast<size_t>(message.inputs_size());
  if (inputs == 0 || inputs > ModuleSession::kMaxInputs) {
    return Bad(absl::StrCat("a forward has ", inputs, " inputs, expected 1 to ",
                            ModuleSession::kMaxInputs));
  }
  auto tensors = TensorsFrom(*message.mutable_inputs());
  if (!tensors.ok()) return tensors.status();
  return ForwardCall{message.call(), message.training(), message.keep(), *std::move(tensors)};
}

v1::ModuleInputGradients ToProto(std::vector<PlainTensor> gradients) {
  v1::ModuleInputGradients message;
  Add(std::move(gradients), *message.mutable_gradients());
  return message;
}

absl::StatusOr<std::vector<PlainTensor>> FromProto(v1::ModuleInputGradients&& message) {
  return TensorsFrom(*message.mutable_gradients());
}

v1::ModuleValues ToProto(MethodValues values) {
  v1::ModuleValues message;
  message.set_plain(std::move(values.plain));
  Add(std::move(values.tensors), *message.mutable_tensors());
  return message;
}

absl::StatusOr<MethodValues> FromProto(v1::ModuleValues&& message) {
  if (message.tensors_size() > kMaxValues) {
    return Bad(absl::StrCat("a method has ", message.tensors_size(),
                            " tensors as arguments or results, expected at most ", kMaxValues));
  }
  auto tensors = TensorsFrom(*message.mutable_tensors());
  if (!tensors.ok()) return tensors.status();
  return MethodValues{std::move(*message.mutable_plain()), *std::move(tensors)};
}

v1::CallModule ToProto(MethodCall call) {
  v1::CallModule message;
  message.set_method(std::move(call.method));
  message.set_training(call.training);
  *message.mutable_arguments() = ToProto(std::move(call.arguments));
  return message;
}

absl::StatusOr<MethodCall> FromProto(v1::CallModule&& message) {
  auto arguments = FromProto(std::move(*message.mutable_arguments()));
  if (!arguments.ok()) return arguments.status();
  return MethodCall{std::move(*message.mutable_method()), message.training(),
                    *std::move(arguments)};
}

v1::NamedModuleTensors ToProto(NamedTensors tensors) {
  v1::NamedModuleTensors message;
  message.mutable_names()->Assign(tensors.names.begin(), tensors.names.end());
  Add(std::move(tensors.tensors), *message.mutable_tensors());
  return message;
}

absl::StatusOr<NamedTensors> FromProto(v1::NamedModuleTensors&& message) {
  if (message.names_size() != message.tensors_size()) {
    return Bad(absl::StrCat("found ", message.names_size(), " names of ", message.tensors_size(),
                            " tensors, expected one for each"));
  }
  auto tensors = TensorsFrom(*message.mutable_tensors());
  if (!tensors.ok()) return tensors.status();
  return NamedTensors{{message.names().begin(), message.names().end()}, *std::move(tensors)};
}

v1::ModuleEntered ToProto(const ModulePlace& place) {
  v1::ModuleEntered message;
  message.set_index(place.index);
  message.set_workers(place.workers);
  message.set_pushes_before(place.pushes_before);
  return message;
}

ModulePlace FromProto(const v1::ModuleEntered& message) {
  return {message.index(), message.workers(), message.pushes_before()};
}

v1::ModuleFailure ToProto(const absl::Status& status) {
  v1::ModuleFailure message;
  message.set_code(static_cast<int>(status.code()));
  message.set_message(std::string(status.message()));
  const Reason reason = ReasonOf(status);
  if (reason != Reason::kNone) message.set_reason(std::string(ReasonName(reason)));
  return message;
}

absl::Status FromProto(const v1::ModuleFailure& message) {
  const bool known = message.code() > 0 && message.code() <= 16;
  const auto code =
      known ? static_cast<absl::StatusCode>(message.code()) : absl::StatusCode::kUnknown;
  return MakeError(code, ReasonFromName(message.reason()), message.message());
}

absl::Status CheckFits(size_t bytes, absl::string_view advice) {
  if (bytes <= kMaxTensorBytes) return absl::OkStatus();
  return Bad(absl::StrCat("the tensors of one call have ", bytes, " bytes, expected at most ",
                          kMaxTensorBytes, "; ", advice));
}

absl::Status CheckFits(const std::vector<PlainTensor>& tensors) {
  size_t bytes = 0;
  for (const PlainTensor& tensor : tensors) bytes += tensor.data.size();
  return CheckFits(bytes);
}

absl::Status CheckFits(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= size_t{kMaxTensorMessage}) return absl::OkStatus();
  return Bad(absl::StrCat("one call would send ", bytes, " bytes, expected at most ",
                          kMaxTensorMessage,
                          " with all tensors, texts and names; make several calls of it"));
}

}  // namespace sluice

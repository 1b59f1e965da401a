// What a trainer sends to a model server, and what it gets: what is taken of a message is as large
// as it says, and is said again as the same.
#include "worker/connection/module/module_messages.h"

#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/v1/module_server.pb.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// Bytes that an element of the tensor has.
size_t ElementSize(const PlainTensor& tensor) {
  switch (tensor.type) {
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    default:
      return 1;
  }
}

void CheckTensor(const PlainTensor& tensor) {
  // Divides instead of multiplying, so that nothing overflows.
  size_t left = tensor.data.size() / ElementSize(tensor);
  CHECK_EQ(left * ElementSize(tensor), tensor.data.size());
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    CHECK_GE(size, 0);
    empty |= size == 0;
    if (size > 0 && !empty) {
      CHECK_EQ(left % static_cast<size_t>(size), 0u);
      left /= static_cast<size_t>(size);
    }
  }
  CHECK(empty ? tensor.data.empty() : left == 1);
}

void CheckTensors(const PlainTensor& tensor) { CheckTensor(tensor); }
void CheckTensors(const ForwardCall& call) {
  for (const PlainTensor& tensor : call.inputs) CheckTensor(tensor);
}
void CheckTensors(const std::vector<PlainTensor>& tensors) {
  for (const PlainTensor& tensor : tensors) CheckTensor(tensor);
}

template <typename Message>
void CheckTaken(Message message) {
  message.DiscardUnknownFields();
  const std::string said = message.SerializeAsString();
  auto taken = FromProto(std::move(message));
  if (!taken.ok()) {
    CheckRefusal(taken.status(), {Reason::kBadArgument});
    return;
  }
  CheckTensors(*taken);
  CHECK(ToProto(*std::move(taken)).SerializeAsString() == said);
}

}  // namespace

void Try(absl::string_view bytes) {
  v1::ModuleRequest request;
  if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    if (request.has_forward()) CheckTaken(request.forward());
    if (request.has_backward()) CheckTaken(request.backward().gradient());
  }
  v1::ModuleReply reply;
  if (reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    if (reply.has_output()) CheckTaken(reply.output());
    if (reply.has_gradients()) CheckTaken(reply.gradients());
    if (reply.has_failure()) CHECK(!FromProto(reply.failure()).ok());
  }
}

}  // namespace sluice

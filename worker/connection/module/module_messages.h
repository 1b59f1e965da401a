// Translates what trainers and model servers say to the messages of module_server.proto, and back.
//
// FromProto() checks every field: its errors are BAD_ARGUMENT and name the field.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/v1/module_server.pb.h"
#include "worker/connection/module/module_session.h"
#include "worker/connection/module/plain_tensor.h"

namespace sluice {

// These move the tensors' bytes, and copy none of them.
v1::ModuleTensor ToProto(PlainTensor tensor);
absl::StatusOr<PlainTensor> FromProto(v1::ModuleTensor&& message);

v1::ForwardModule ToProto(ForwardCall call);
absl::StatusOr<ForwardCall> FromProto(v1::ForwardModule&& message);

v1::ModuleInputGradients ToProto(std::vector<PlainTensor> gradients);
absl::StatusOr<std::vector<PlainTensor>> FromProto(v1::ModuleInputGradients&& message);

v1::CallModule ToProto(MethodCall call);
absl::StatusOr<MethodCall> FromProto(v1::CallModule&& message);

v1::ModuleValues ToProto(MethodValues values);
absl::StatusOr<MethodValues> FromProto(v1::ModuleValues&& message);

v1::NamedModuleTensors ToProto(NamedTensors tensors);
absl::StatusOr<NamedTensors> FromProto(v1::NamedModuleTensors&& message);

v1::ModuleEntered ToProto(const ModulePlace& place);
ModulePlace FromProto(const v1::ModuleEntered& message);

// The status is not OK.
v1::ModuleFailure ToProto(const absl::Status& status);
absl::Status FromProto(const v1::ModuleFailure& message);

// BAD_ARGUMENT if the tensor's bytes are not those that its type and shape say.
absl::Status CheckSound(const PlainTensor& tensor);

// BAD_ARGUMENT if tensors have too many bytes for one message. `advice` says what to do then.
absl::Status CheckFits(size_t bytes, absl::string_view advice = "use smaller batches");
absl::Status CheckFits(const std::vector<PlainTensor>& tensors);

// BAD_ARGUMENT if the message is too large to be sent, with all its texts and names.
absl::Status CheckFits(const google::protobuf::MessageLite& message);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_

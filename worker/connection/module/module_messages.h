// Translates what trainers and model servers say to the messages of module_server.proto, and back.
//
// FromProto() checks every field: its errors are BAD_ARGUMENT and name the field.

#ifndef SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_
#define SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// BAD_ARGUMENT if the tensors have too many bytes for one message.
absl::Status CheckFits(const std::vector<PlainTensor>& tensors);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_MODULE_MODULE_MESSAGES_H_

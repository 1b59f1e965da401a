#include "worker/connection/grpc/call.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/model_name.h"
#include "common/wire/deadline.h"
#include "common/wire/status.h"

namespace sluice {

void Prepare(grpc::ClientContext& context, absl::Duration timeout, const CallMetadata& metadata) {
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(DeadlineAfter(timeout));
  }
  if (!metadata.token.empty()) context.AddMetadata("authorization", "Bearer " + metadata.token);
  if (metadata.model.empty()) return;
  context.AddMetadata(kModelKey, metadata.model);
  if (metadata.begins_model) context.AddMetadata(kBeginsModelKey, "1");
}

absl::Status EndOf(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError("the server ended the call");
  }
  absl::Status end = FromGrpcStatus(status);
  if (!absl::IsUnavailable(end) || ReasonOf(end) != Reason::kNone) return end;
  // The message is gRPC's, for example "Socket closed", not the server's.
  return absl::UnavailableError(absl::StrCat("lost the server: ", end.message()));
}

absl::Status UnexpectedMessage(absl::string_view call, absl::string_view expected) {
  return absl::InternalError(absl::StrCat("the server's answer to ", call, " has no ", expected,
                                          "; do server and worker run the same version?"));
}

}  // namespace sluice

#include "common/wire/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "sluice/own/google/rpc/error.pb.h"

namespace sluice {
namespace {

namespace rpc = own::google::rpc;

constexpr char kDomain[] = "sluice";
constexpr char kRetryAfter[] = "retry_after";           // in ErrorInfo.metadata
constexpr char kRetryPayload[] = "sluice/retry_after";  // the same of an absl::Status
constexpr char kErrorInfo[] = "/google.rpc.ErrorInfo";  // on the wire; in C++ it has another name

std::string EncodeDetails(const absl::Status& status) {
  rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(ReasonOf(status))));
  info.set_domain(kDomain);
  const absl::optional<absl::Cord> after = status.GetPayload(kRetryPayload);
  if (after.has_value()) (*info.mutable_metadata())[kRetryAfter] = std::string(*after);
  rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  auto& detail = *details.add_details();
  detail.set_type_url(absl::StrCat("type.googleapis.com", kErrorInfo));
  detail.set_value(info.SerializeAsString());
  return details.SerializeAsString();
}

// A peer's error, with what its details say.
absl::Status WithDetails(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string& message = status.error_message();
  rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return absl::Status(code, message);
  for (const auto& detail : details.details()) {
    rpc::ErrorInfo info;
    if (!absl::EndsWith(detail.type_url(), kErrorInfo)) continue;
    if (!info.ParseFromString(detail.value()) || info.domain() != kDomain) continue;
    absl::Status whole = MakeError(code, ReasonFromName(info.reason()), message);
    const auto found = info.metadata().find(kRetryAfter);
    absl::Duration after;
    const bool tells = found != info.metadata().end() && absl::ParseDuration(found->second, &after);
    if (tells && after >= absl::ZeroDuration()) {
      whole.SetPayload(kRetryPayload, absl::Cord(found->second));
    }
    return whole;
  }
  return absl::Status(code, message);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message());
  if (ReasonOf(status) == Reason::kNone) return grpc::Status(code, message);
  return grpc::Status(code, message, EncodeDetails(status));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return WithDetails(status);
}

}  // namespace sluice

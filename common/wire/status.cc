#include "common/wire/status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "sluice/own/google/rpc/error.pb.h"

namespace sluice {
namespace {

namespace rpc = own::google::rpc;

constexpr char kDomain[] = "sluice";
constexpr char kErrorInfo[] = "/google.rpc.ErrorInfo";  // on the wire; in C++ it has another name

std::string EncodeDetails(const absl::Status& status) {
  rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(ReasonOf(status))));
  info.set_domain(kDomain);
  rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  auto& detail = *details.add_details();
  detail.set_type_url(absl::StrCat("type.googleapis.com", kErrorInfo));
  detail.set_value(info.SerializeAsString());
  return details.SerializeAsString();
}

Reason DecodeReason(const std::string& bytes) {
  rpc::Status details;
  if (!details.ParseFromString(bytes)) return Reason::kNone;
  for (const auto& detail : details.details()) {
    rpc::ErrorInfo info;
    if (!absl::EndsWith(detail.type_url(), kErrorInfo)) continue;
    if (info.ParseFromString(detail.value()) && info.domain() == kDomain) {
      return ReasonFromName(info.reason());
    }
  }
  return Reason::kNone;
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
  return MakeError(static_cast<absl::StatusCode>(status.error_code()),
                   DecodeReason(status.error_details()), status.error_message());
}

}  // namespace sluice

#include "common/wire/status.h"

#include <string>

#include "common/base/error.h"
#include "google/rpc/error.pb.h"

namespace sluice {
namespace {

constexpr char kDomain[] = "sluice";

std::string EncodeDetails(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(ReasonOf(status))));
  info.set_domain(kDomain);
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  details.add_details()->PackFrom(info);
  return details.SerializeAsString();
}

Reason DecodeReason(const std::string& bytes) {
  google::rpc::Status details;
  if (!details.ParseFromString(bytes)) return Reason::kNone;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info) && info.domain() == kDomain) return ReasonFromName(info.reason());
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

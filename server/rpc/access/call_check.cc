#include "server/rpc/access/call_check.h"

#include "absl/strings/str_cat.h"
#include "common/wire/caller.h"
#include "server/rpc/access/method_roles.h"
#include "server/rpc/access/rpc_limits.h"

namespace sluice {
namespace {

absl::Status CheckMetadata(const grpc::ServerContextBase& context, absl::string_view method) {
  constexpr size_t kOfEach = 32;  // so counts HTTP/2
  size_t bytes = method.size() + context.ExperimentalGetAuthority().size() + 2 * kOfEach;
  for (const auto& entry : context.client_metadata()) {
    bytes += entry.first.size() + entry.second.size() + kOfEach;
  }
  if (bytes <= RpcLimits::kMetadataBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the call's metadata have ", bytes, " bytes, expected at most ", RpcLimits::kMetadataBytes));
}

}  // namespace

absl::Status CheckCall(const grpc::ServerContextBase& context, absl::string_view method,
                       Roles may_call, const CallerCheck& check) {
  absl::Status may = CheckMetadata(context, method);
  if (may.ok() && check.roles == RoleCheck::kOn) {
    may = CheckMay(RolesOf(context), method, may_call);
  }
  return may.ok() ? CheckToken(context, check.token) : may;
}

}  // namespace sluice

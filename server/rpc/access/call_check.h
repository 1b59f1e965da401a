// The checks that every call passes before a service sees it.

#ifndef SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_
#define SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/role.h"

namespace sluice {

// Whether the roles in a caller's certificate decide what it may call. Off without TLS.
enum class RoleCheck { kOff, kOn };

// The credentials that a caller of a service must show.
struct CallerCheck {
  RoleCheck roles = RoleCheck::kOff;
  std::string token;  // empty: none
};

// Checks a call of `method` (gRPC's path). Callers with one of the roles `may_call` may make it.
// Returns
// - RESOURCE_EXHAUSTED if the method, the host and the metadata that gRPC hands to services have
//   more than RpcLimits::kMetadataBytes. gRPC itself enforces that limit only for callers that
//   acknowledge its settings.
// - with kOn, the error of CheckMay() for the caller's roles.
// - the error of CheckToken() for its token.
absl::Status CheckCall(const grpc::ServerContextBase& context, absl::string_view method,
                       Roles may_call, const CallerCheck& check);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_CALL_CHECK_H_

#include "common/wire/caller.h"

#include <grpc/grpc_security_constants.h>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/security/secret.h"

namespace sluice {

absl::Status CheckToken(const grpc::ServerContextBase& context, const std::string& token) {
  if (token.empty()) return absl::OkStatus();
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) {
    return MakeError(Reason::kBadToken,
                     "the call has no job token; start the caller with this job's token");
  }
  absl::string_view value(found->second.data(), found->second.size());
  if (!absl::ConsumePrefix(&value, "Bearer ")) {
    return MakeError(Reason::kBadToken,
                     "the metadata `authorization` does not begin with \"Bearer \"; send "
                     "`authorization: Bearer <token>`");
  }
  if (SameSecret(value, token)) return absl::OkStatus();
  return MakeError(Reason::kBadToken,
                   "the job token is not this server's; start the caller with this job's token");
}

Roles RolesOf(const grpc::ServerContextBase& context) {
  const auto peer = context.auth_context();
  const auto transport = peer->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (transport.empty() || transport[0] != GRPC_SSL_TRANSPORT_SECURITY_TYPE) return Roles::All();
  Roles roles;
  for (const grpc::string_ref& uri : peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    const auto role = RoleFromUri(absl::string_view(uri.data(), uri.size()));
    if (role.has_value()) roles = roles | *role;
  }
  return roles;
}

}  // namespace sluice

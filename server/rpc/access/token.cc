#include "server/rpc/access/token.h"

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/security/secret.h"

namespace sluice {

absl::Status CheckToken(const grpc::CallbackServerContext& context, const std::string& token) {
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

}  // namespace sluice

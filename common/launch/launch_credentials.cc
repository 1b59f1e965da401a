#include "common/launch/launch_credentials.h"

#include <utility>

#include "common/security/role.h"

namespace sluice {

absl::StatusOr<LaunchCredentials> MakeLaunchCredentials(std::vector<std::string> hosts,
                                                        absl::Time now) {
  const Validity validity = {now - kLaunchClockSkew, now + kLongestLaunch};
  const auto authority = CertificateAuthority::Create(validity);
  if (!authority.ok()) return authority.status();
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  auto server =
      (*authority)->Issue({"Sluice server", std::move(hosts), {RoleUri(Role::kServer)}, validity});
  if (!server.ok()) return server.status();
  auto worker = (*authority)->Issue({"Sluice worker", {}, {RoleUri(Role::kWorker)}, validity});
  if (!worker.ok()) return worker.status();
  return LaunchCredentials{*std::move(server), *std::move(worker)};
}

}  // namespace sluice

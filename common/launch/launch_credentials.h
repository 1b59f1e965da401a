// Credentials for the processes of one launch. Rank 0 makes them in memory; no file holds them. It
// gives the servers' to the ranks that serve, and only the workers' to all.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_
#define SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificates.h"

namespace sluice {

// The largest difference between the clocks of nodes, and the time for which credentials are valid.
// They cannot be renewed: a worker whose connection breaks after that time cannot join again.
inline constexpr absl::Duration kLaunchClockSkew = absl::Hours(24);
inline constexpr absl::Duration kLongestLaunch = absl::Hours(30 * 24);

struct LaunchCredentials {
  Credentials server;  // shared by all servers; has the role server
  Credentials worker;  // shared by all workers; has the role worker
};

// Makes the credentials with an authority that is destroyed before this returns, so that nobody can
// get a certificate later. `hosts` are the names and addresses of all servers besides loopback.
// Errors are CertificateAuthority's.
absl::StatusOr<LaunchCredentials> MakeLaunchCredentials(std::vector<std::string> hosts,
                                                        absl::Time now);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_

// Credentials for the processes of one launch, made in memory by the one that serves.

#ifndef SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_
#define SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificates.h"

namespace sluice {

// How far the nodes' clocks may be behind, and how long a job may last: they cannot be renewed, and
// a worker whose connection breaks later cannot come back.
inline constexpr absl::Duration kLaunchClockSkew = absl::Hours(24);
inline constexpr absl::Duration kLongestLaunch = absl::Hours(30 * 24);

struct LaunchCredentials {
  Credentials server;
  Credentials worker;  // the same for all; with the role of a worker
};

// By an authority that lasts as long as this call, so that nobody can ever be added. `hosts` are
// the names and addresses the server is reached at, besides loopback.
absl::StatusOr<LaunchCredentials> MakeLaunchCredentials(std::vector<std::string> hosts,
                                                        absl::Time now);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_LAUNCH_CREDENTIALS_H_

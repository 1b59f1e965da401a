// The connection to a job of one server or of several, which are one server to its user. Of several
// servers, each holds one stripe of the vector (common/tensor/stripes.h).
//
// The session is with the first server, the leader. Pushes, pulls and offers go to all servers
// at once. "Several servers" in proto/sluice/v1/parameter_server.proto has the rules.

#ifndef SLUICE_WORKER_CONNECTION_STRIPED_CONNECTION_H_
#define SLUICE_WORKER_CONNECTION_STRIPED_CONNECTION_H_

#include <memory>

#include "absl/time/time.h"
#include "worker/connection/server_connection.h"
#include "worker/connection/server_group.h"

namespace sluice {

// How long the leader's call goes on after another server's has failed; see CallsAtOnce.
inline constexpr absl::Duration kLeaderPatience = absl::Seconds(2);

// Join() dials the servers that the Welcome names, and that are not connected since an earlier
// Join(). UNAVAILABLE names the server that cannot be reached. A job of one server is dialed
// nothing: then every call goes to `first` as it is.
std::unique_ptr<ServerConnection> MakeStripedConnection(std::unique_ptr<ServerConnection> first,
                                                        DialServer dial,
                                                        absl::Duration patience = kLeaderPatience);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_STRIPED_CONNECTION_H_

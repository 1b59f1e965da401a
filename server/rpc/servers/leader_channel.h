// A connection of a replica to the leader.

#ifndef SLUICE_SERVER_RPC_SERVERS_LEADER_CHANNEL_H_
#define SLUICE_SERVER_RPC_SERVERS_LEADER_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/credentials_source.h"

namespace sluice {

// Makes a channel with a connection of its own to `target`: "unix:/…" or "host:port". With
// `credentials`, which are read now, it speaks mutual TLS over TCP. Any thread may call it. Errors
// are those of the credentials.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeLeaderChannel(
    const std::string& target, const CredentialsSource& credentials);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_LEADER_CHANNEL_H_

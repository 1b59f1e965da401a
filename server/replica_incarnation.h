// What a replica's server has for one incarnation of the leader: a stripe of the vector, its gRPC
// server, and the link to the leader. ReplicaServer makes it.

#ifndef SLUICE_SERVER_REPLICA_INCARNATION_H_
#define SLUICE_SERVER_REPLICA_INCARNATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/address.h"
#include "server/durable/stripe_directory.h"
#include "server/replica/replica.h"
#include "server/replica_server.h"
#include "server/rpc/server.h"
#include "server/rpc/servers/leader_link.h"

namespace sluice {

// Used by one thread.
class ReplicaIncarnation {
 public:
  // Listens on options.listen, which is set. Errors are those of the address, of the credentials
  // and of StripeDirectory.
  static absl::StatusOr<std::unique_ptr<ReplicaIncarnation>> Start(
      const ReplicaServerOptions& options);

  // Ends its calls within `grace`, and then the link. Waits for the work that they have begun.
  void Shutdown(absl::Duration grace);
  ~ReplicaIncarnation() { Shutdown(absl::ZeroDuration()); }

  const Address& address() const { return address_; }
  Replica& replica() { return replica_; }
  LeaderLink& link() { return *link_; }

 private:
  ReplicaIncarnation(const ReplicaServerOptions& options, std::unique_ptr<StripeDirectory> storage);

  absl::Status Listen(const ReplicaServerOptions& options);

  const std::unique_ptr<StripeDirectory> storage_;  // or null
  Replica replica_;
  Address address_;
  std::unique_ptr<GrpcServer> grpc_server_;
  std::unique_ptr<LeaderLink> link_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_INCARNATION_H_

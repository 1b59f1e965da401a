// What a server that is not the first one has of one incarnation of the first: a stripe of the
// vector, its gRPC server, and the link to the first server. HolderServer makes it.

#ifndef SLUICE_SERVER_HOLDER_INCARNATION_H_
#define SLUICE_SERVER_HOLDER_INCARNATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/address.h"
#include "server/durable/stripe_directory.h"
#include "server/holder_server.h"
#include "server/rpc/server.h"
#include "server/rpc/servers/sequencer_link.h"
#include "server/shard/held_stripe.h"

namespace sluice {

// Used by one thread.
class HolderIncarnation {
 public:
  // Listens on options.listen, which is set. Errors are those of the address, of the credentials
  // and of StripeDirectory.
  static absl::StatusOr<std::unique_ptr<HolderIncarnation>> Start(
      const HolderServerOptions& options);

  // Ends its calls within `grace`, and then the link. Waits for the work that they have begun.
  void Shutdown(absl::Duration grace);
  ~HolderIncarnation() { Shutdown(absl::ZeroDuration()); }

  const Address& address() const { return address_; }
  HeldStripe& stripe() { return stripe_; }
  SequencerLink& link() { return *link_; }

 private:
  HolderIncarnation(const HolderServerOptions& options, std::unique_ptr<StripeDirectory> storage);

  absl::Status Listen(const HolderServerOptions& options);

  const std::unique_ptr<StripeDirectory> storage_;  // or null
  HeldStripe stripe_;
  Address address_;
  std::unique_ptr<GrpcServer> grpc_server_;
  std::unique_ptr<SequencerLink> link_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_INCARNATION_H_

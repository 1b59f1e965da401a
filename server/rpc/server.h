// The gRPC server: all services on one address, with health checks and reflection. Server owns it.

#ifndef SLUICE_SERVER_RPC_SERVER_H_
#define SLUICE_SERVER_RPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "server/operator/log_ring.h"
#include "server/replica/replica.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/model_parts.h"
#include "server/rpc/servers/replica_links.h"

namespace sluice {

// Serves until Shutdown(), on gRPC's threads.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;

  // The address at which it listens. If port 0 was asked for, this has the port that was chosen.
  virtual const Address& address() const = 0;

  // Refuses new calls and returns when all open calls have ended. Calls that are still open after
  // `grace` are cancelled.
  virtual void Shutdown(absl::Duration grace) = 0;
};

struct GrpcServerOptions {
  Address address;
  // Callers of the ParameterServer and of Admin must present this token; empty: none.
  std::string token;
  // For mutual TLS, which only TCP uses. Empty: plaintext, where every caller has all roles.
  CredentialsSource credentials;
  RpcLimits limits = {};
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
  // Where other machines reach this server: a host, which is joined with the port that it listens
  // on; empty: that of `address`. Only with several servers.
  std::string advertised_host = {};
  // As many are expected. The more they are, the less each may send ahead.
  uint32_t workers = 1;
  // The models with names, which outlive the server; null: the job cannot have several models.
  ModelFinder* named = nullptr;
  // What Admin tells of the log.
  std::shared_ptr<const LogRing> log = std::make_shared<LogRing>();
};

// Starts to listen. `model` is the one without a name. With several servers `replicas` has the
// links to the others, else it is null. Both outlive the server. UNAVAILABLE says why it cannot
// listen, for example because the port is in use. Other errors are those of the credentials.
absl::StatusOr<std::unique_ptr<GrpcServer>> StartGrpcServer(const GrpcServerOptions& options,
                                                            const ModelParts& model,
                                                            ReplicaLinks* replicas = nullptr);

// The same for the server of a replica. Of the Inspector and of Admin it serves GetRow alone. Their
// other calls get NOT_FIRST_SERVER, which names `first_server`, the leader's gRPC target. `replica`
// outlives it, and has executed no command yet.
absl::StatusOr<std::unique_ptr<GrpcServer>> StartStripeServer(const GrpcServerOptions& options,
                                                              const std::string& first_server,
                                                              Replica& replica);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVER_H_

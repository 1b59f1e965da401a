// The server's door: gRPC on one address, with health checks and reflection.

#ifndef SLUICE_SERVER_RPC_SERVER_H_
#define SLUICE_SERVER_RPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "server/durable/directory.h"
#include "server/rpc/access/rpc_limits.h"
#include "server/shard/shard.h"

namespace sluice {

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;

  // Where it listens; the port is real even if 0 was asked for.
  virtual const Address& address() const = 0;

  // Refuses new calls and returns when all have ended; those still open after `grace` are
  // cancelled.
  virtual void Shutdown(absl::Duration grace) = 0;
};

struct GrpcServerOptions {
  Address address;
  // Callers of the ParameterServer and of Admin must present it, unless it is empty.
  std::string token;
  // For mutual TLS, on TCP alone; empty: plaintext, in which everybody has every role.
  CredentialsSource credentials;
  RpcLimits limits = {};
  // Workers may use the encodings whose transforms are in here.
  TransformRegistry transforms = BuiltinTransforms();
};

// Listens. `shard` and `durable`, where checkpoints are saved, outlive the server. UNAVAILABLE says
// why it cannot, for example that the port is in use; other errors are those of the credentials.
absl::StatusOr<std::unique_ptr<GrpcServer>> StartGrpcServer(const GrpcServerOptions& options,
                                                            Shard& shard,
                                                            DurableDirectory* durable = nullptr);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVER_H_

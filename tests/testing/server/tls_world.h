// A server in this process with mutual TLS, and channels of callers with any certificate.

#ifndef SLUICE_TESTS_TESTING_SERVER_TLS_WORLD_H_
#define SLUICE_TESTS_TESTING_SERVER_TLS_WORLD_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/credentials_source.h"
#include "server/rpc/server.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/server/certificates.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// A new channel to `address`, with its own connection.
std::shared_ptr<grpc::Channel> TlsChannel(const std::string& address,
                                          const Credentials& credentials);

class TlsWorld {
 public:
  // Serves with the credentials of `source`. Port 0 means any free port.
  explicit TlsWorld(CredentialsSource source, const RpcLimits& limits = {}, uint16_t port = 0);
  ~TlsWorld();

  std::string address() const { return door_->address().ToString(); }
  uint16_t port() const { return door_->address().port; }
  Shard& shard() { return shard_; }

  // A worker's connection.
  absl::StatusOr<std::unique_ptr<ServerConnection>> Connect(const Credentials& credentials) const;

 private:
  FakeClock clock_;
  Shard shard_;
  std::unique_ptr<GrpcServer> door_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_TLS_WORLD_H_

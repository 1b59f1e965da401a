#include "tests/testing/server/tls_world.h"

#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

std::shared_ptr<grpc::Channel> TlsChannel(const std::string& address,
                                          const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const grpc::SslCredentialsOptions options = {credentials.authority, credentials.key,
                                               credentials.certificate};
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
}

TlsWorld::TlsWorld(CredentialsSource source, const RpcLimits& limits, uint16_t port)
    : shard_(Sync(1), clock_) {
  GrpcServerOptions options;
  options.address.host = "127.0.0.1";
  options.address.port = port;
  options.credentials = std::move(source);
  options.limits = limits;
  auto door = StartGrpcServer(options, {&shard_});
  EXPECT_TRUE(door.ok()) << door.status();
  door_ = *std::move(door);
}

TlsWorld::~TlsWorld() { door_->Shutdown(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<ServerConnection>> TlsWorld::Connect(
    const Credentials& credentials) const {
  GrpcConnectionOptions options;
  options.address = address();
  options.credentials = SourceOf(credentials);
  return ConnectOverGrpc(options);
}

}  // namespace sluice

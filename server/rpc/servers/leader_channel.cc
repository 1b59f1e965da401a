#include "server/rpc/servers/leader_channel.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/strip.h"
#include "common/security/secret.h"

namespace sluice {
namespace {

constexpr int kPingMilliseconds = 10000;  // a server whose node is gone answers no ping

grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  // Nodes of a cluster reach each other directly, even if the environment names a proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  // Each channel has a connection of its own, as the one before has broken.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeLeaderChannel(
    const std::string& target, const CredentialsSource& credentials) {
  absl::string_view path = target;
  if (credentials == nullptr || absl::ConsumePrefix(&path, "unix:")) {
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                     ChannelArguments());
  }
  auto now = credentials();
  if (!now.ok()) return now.status();
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = std::move(now->authority);
  tls.pem_private_key = std::move(now->key);
  tls.pem_cert_chain = std::move(now->certificate);
  auto channel = grpc::CreateCustomChannel(target, grpc::SslCredentials(tls), ChannelArguments());
  Wipe(tls.pem_private_key);
  return channel;
}

}  // namespace sluice

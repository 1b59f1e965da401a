#include "worker/connection/grpc/channel.h"

#include <glog/logging.h>
#include <grpcpp/create_channel_posix.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/net/address.h"
#include "common/net/unix_socket.h"
#include "common/security/secret.h"
#include "common/wire/deadline.h"
#include "common/wire/status.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/local_sockets.h"

namespace sluice {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);  // between two attempts to connect
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kProbe = absl::Seconds(1);

// What may be on its way to this process within a machine, in bytes. gRPC's own estimate grows with
// the time that this process waits for a core, until it holds all parameters a second time.
constexpr int kLocalWindow = 8 << 20;

void TuneForOwnMachine(const Address& address, grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLocalWindow);
  if (!address.is_unix()) SendWithoutPacing(arguments);
}

grpc::ChannelArguments Arguments(const std::string& target, Connection connection) {
  grpc::ChannelArguments arguments;
  // Nodes of a cluster reach each other directly, even if the environment names a proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A server whose node is gone answers no ping. Calls then fail instead of waiting for ever.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kFirstPause / absl::Milliseconds(1)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kLongestPause / absl::Milliseconds(1)));
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, connection != Connection::kShared);
  if (connection == Connection::kForTensors) {
    arguments.SetMaxReceiveMessageSize(kMaxTensorMessage);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  }
  const auto address = ParseAddress(target);
  if (address.ok() && address->IsLocal()) TuneForOwnMachine(*address, arguments);
  return arguments;
}

// The reason why there is no connection. gRPC gives it only as the error of a call.
absl::Status Probe(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  Prepare(context, kProbe, CallMetadata());
  v1::LeaveResponse response;
  const grpc::Status status =
      v1::ParameterServer::NewStub(channel)->Leave(&context, v1::LeaveRequest(), &response);
  return absl::UnavailableError(FromGrpcStatus(status).message());
}

}  // namespace

GrpcChannel::GrpcChannel(const std::string& address, CredentialsSource credentials,
                         Connection connection)
    : address_(address), credentials_(std::move(credentials)), connection_(connection) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    unix_path_ = std::string(path);
  } else if (credentials_ == nullptr) {
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                         Arguments(address_, connection_));
  }
}

absl::Status GrpcChannel::Connect(absl::Duration timeout) {
  if (!unix_path_.empty()) return ConnectToUnix(timeout);
  if (credentials_ != nullptr) {
    const absl::Status renewed = RenewCredentials();
    if (!renewed.ok() && channel_ == nullptr) return renewed;
    // The files may be incomplete because they are being replaced.
    if (!renewed.ok())
      LOG(ERROR) << "TLS continues with the previous credentials: " << renewed.message();
  }
  const bool connected = channel_->WaitForConnected(DeadlineAfter(timeout));
  return connected ? absl::OkStatus() : Probe(channel_);
}

absl::Status GrpcChannel::RenewCredentials() {
  auto now = credentials_();
  if (!now.ok()) return now.status();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = std::move(now->authority);
  options.pem_private_key = std::move(now->key);
  options.pem_cert_chain = std::move(now->certificate);
  channel_ = grpc::CreateCustomChannel(address_, grpc::SslCredentials(options),
                                       Arguments(address_, connection_));
  Wipe(options.pem_private_key);
  return absl::OkStatus();
}

absl::Status GrpcChannel::ConnectToUnix(absl::Duration timeout) {
  const absl::Time end = RealClock().Now() + timeout;
  absl::Duration pause = kFirstPause;
  for (;;) {
    auto connected = ConnectUnix(unix_path_);
    if (connected.ok()) {
      channel_ = grpc::CreateCustomInsecureChannelFromFd(address_, connected->Release(),
                                                         Arguments(address_, connection_));
      return absl::OkStatus();
    }
    if (RealClock().Now() >= end) return connected.status();
    // Nothing tells when a server listens on this socket.
    absl::SleepFor(std::min(pause, end - RealClock().Now()));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace sluice

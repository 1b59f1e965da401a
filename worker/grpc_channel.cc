#include "worker/grpc_channel.h"

#include <grpcpp/create_channel_posix.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/unix_socket.h"
#include "common/wire_status.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/grpc_call.h"

namespace sluice {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);  // between two attempts
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kProbe = absl::Seconds(1);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A cluster's nodes reach each other directly, whatever proxy the environment names.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A server whose node is gone answers no ping: calls fail instead of waiting for ever.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kFirstPause / absl::Milliseconds(1)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kLongestPause / absl::Milliseconds(1)));
  return arguments;
}

// Why no connection comes about, in gRPC's words: it tells them of calls only.
absl::Status Probe(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  Prepare(context, kProbe, "");
  v1::LeaveResponse response;
  const grpc::Status status =
      v1::ParameterServer::NewStub(channel)->Leave(&context, v1::LeaveRequest(), &response);
  return absl::UnavailableError(FromGrpcStatus(status).message());
}

}  // namespace

GrpcChannel::GrpcChannel(const std::string& address) : address_(address) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    unix_path_ = std::string(path);
  } else {
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Arguments());
  }
}

absl::Status GrpcChannel::Connect(absl::Duration timeout) {
  if (!unix_path_.empty()) return ConnectToUnix(timeout);
  const bool connected = channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout));
  return connected ? absl::OkStatus() : Probe(channel_);
}

absl::Status GrpcChannel::ConnectToUnix(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  absl::Duration pause = kFirstPause;
  for (;;) {
    auto connected = ConnectUnix(unix_path_);
    if (connected.ok()) {
      channel_ =
          grpc::CreateCustomInsecureChannelFromFd(address_, connected->Release(), Arguments());
      return absl::OkStatus();
    }
    if (absl::Now() >= end) return connected.status();
    absl::SleepFor(std::min(pause, end - absl::Now()));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace sluice

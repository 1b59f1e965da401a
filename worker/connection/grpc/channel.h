// A gRPC channel to a server, which can be connected again when the server comes back.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_CHANNEL_H_
#define SLUICE_WORKER_CONNECTION_GRPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/security/credentials_source.h"

namespace sluice {

// Whether gRPC may use one connection for all channels of this process to one address.
enum class Connection {
  kShared,
  kOfItsOwn,
  // Its own, and for a call in which tensors of kMaxTensorMessage bytes come, and in which the
  // server may be silent for long.
  kForTensors,
};

inline constexpr int kMaxTensorMessage = (64 << 20) + (64 << 10);

// Where a server is, and what it asks of its callers.
struct GrpcEndpoint {
  std::string address;                 // gRPC target: "host:port" or "unix:/path"
  std::string token = {};              // empty if the server asks for none
  CredentialsSource credentials = {};  // for mutual TLS; empty: plaintext
  absl::Duration connect_timeout = absl::Seconds(10);
  std::string model = {};  // of a job that has several; empty: the one without a name
};

// Used by one thread.
class GrpcChannel {
 public:
  // `address` is a gRPC target: "host:port" or "unix:/path". With `credentials`, which are for TCP
  // only, the channel speaks mutual TLS; without them, plaintext.
  GrpcChannel(const std::string& address, CredentialsSource credentials,
              Connection connection = Connection::kShared);

  // Returns once there is a connection. With a unix socket or TLS it makes a new channel, with the
  // credentials as they are now, so get() changes. UNAVAILABLE gives the reason if there is no
  // connection within `timeout`. The first attempt may also return an error of the credentials.
  absl::Status Connect(absl::Duration timeout);

  const std::shared_ptr<grpc::Channel>& get() const { return channel_; }

 private:
  absl::Status ConnectToUnix(absl::Duration timeout);
  absl::Status RenewCredentials();

  const std::string address_;
  const CredentialsSource credentials_;
  const Connection connection_;
  std::string unix_path_;  // empty for TCP
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_CHANNEL_H_

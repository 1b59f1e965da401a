// A worker's connection to a server, made again when the server comes back.

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
enum class Connection { kShared, kOfItsOwn };

// For one thread.
class GrpcChannel {
 public:
  // To a gRPC target: "host:port", or "unix:/path". With `credentials`, for TCP alone, it speaks
  // mutual TLS; if they are empty, plaintext.
  GrpcChannel(const std::string& address, CredentialsSource credentials,
              Connection connection = Connection::kShared);

  // Returns once there is a connection. A unix socket is connected anew, and so is TLS, with what
  // its credentials are now: get() is another channel then. UNAVAILABLE says why there is none, if
  // it takes longer than `timeout`; other errors, of the first attempt alone, are those of the
  // credentials.
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

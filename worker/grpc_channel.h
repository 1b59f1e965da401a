// A worker's connection to a server, made again when the server comes back.

#ifndef SLUICE_WORKER_GRPC_CHANNEL_H_
#define SLUICE_WORKER_GRPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sluice {

// For one thread.
class GrpcChannel {
 public:
  // To a gRPC target: "host:port", or "unix:/path".
  explicit GrpcChannel(const std::string& address);

  // Returns once there is a connection. A unix socket is connected anew: get() is another channel
  // then. UNAVAILABLE says why there is none, if it takes longer than `timeout`.
  absl::Status Connect(absl::Duration timeout);

  const std::shared_ptr<grpc::Channel>& get() const { return channel_; }

 private:
  absl::Status ConnectToUnix(absl::Duration timeout);

  const std::string address_;
  std::string unix_path_;  // empty for TCP
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_GRPC_CHANNEL_H_

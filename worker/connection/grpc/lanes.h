// Lanes: further TCP connections of a worker. Each carries a share of the chunks of a push or pull.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_LANES_H_
#define SLUICE_WORKER_CONNECTION_GRPC_LANES_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/base/serial_executor.h"
#include "common/security/credentials_source.h"
#include "sluice/v1/parameter_server.pb.h"
#include "worker/connection/grpc/channel.h"

namespace sluice {

// One lane, with the thread that sends and receives on it. One push or pull uses it at a time.
struct GrpcLane {
  GrpcLane(const std::string& address, const CredentialsSource& credentials)
      : channel(address, credentials, Connection::kOfItsOwn) {}

  GrpcChannel channel;
  std::unique_ptr<grpc::GenericStub> stub;  // null until it is connected
  SerialExecutor thread;
};

// Opens and closes a worker's lanes. Used by one thread.
class GrpcLanes {
 public:
  // The server is on TCP.
  GrpcLanes(std::string address, CredentialsSource credentials)
      : address_(std::move(address)), credentials_(std::move(credentials)) {}

  // Returns `count` lanes: closes surplus ones, and opens missing ones before it returns. If one
  // cannot be opened, it logs that, returns fewer, and never tries again until Close().
  std::vector<std::shared_ptr<GrpcLane>> Get(size_t count);

  // Closes all lanes. Called when the server has come back, perhaps as another process.
  void Close();

 private:
  bool Open();

  const std::string address_;
  const CredentialsSource credentials_;
  std::vector<std::shared_ptr<GrpcLane>> lanes_;
  bool gave_up_ = false;
};

// The lanes of one push or pull. Without lanes, everything goes through the call's own connection.
struct LaneUse {
  std::vector<std::shared_ptr<GrpcLane>> lanes;  // shared, so that they outlive the call
  v1::Lane name;                                 // names the call to the server
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_LANES_H_

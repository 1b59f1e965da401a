// Connections beside a worker's own, through which a share of what it pushes and pulls goes.

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

// One of them, with the thread that sends and receives there. One push or pull uses it at a time.
struct GrpcLane {
  GrpcLane(const std::string& address, const CredentialsSource& credentials)
      : channel(address, credentials, Connection::kOfItsOwn) {}

  GrpcChannel channel;
  std::unique_ptr<grpc::GenericStub> stub;  // once it is connected
  SerialExecutor thread;
};

// For one thread.
class GrpcLanes {
 public:
  // To a server on TCP.
  GrpcLanes(std::string address, CredentialsSource credentials)
      : address_(std::move(address)), credentials_(std::move(credentials)) {}

  // `count` lanes, or as many as there are: others are ended, and those that are missing are opened
  // before it returns; after one that could not be, no more are tried.
  std::vector<std::shared_ptr<GrpcLane>> Get(size_t count);

  // Ends all. To be called when the server has come back, perhaps as another process.
  void Close();

 private:
  bool Open();

  const std::string address_;
  const CredentialsSource credentials_;
  std::vector<std::shared_ptr<GrpcLane>> lanes_;
  bool gave_up_ = false;
};

// What one push or pull sends through lanes; no lanes: all goes through its own connection.
struct LaneUse {
  std::vector<std::shared_ptr<GrpcLane>> lanes;  // theirs too: others may have been opened since
  v1::Lane name;                                 // of the call
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_LANES_H_

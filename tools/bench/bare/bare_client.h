// Calls of gRPC and nothing else, to bare_server_main: what a round of them costs is what gRPC
// costs.

#ifndef SLUICE_TOOLS_BENCH_BARE_BARE_CLIENT_H_
#define SLUICE_TOOLS_BENCH_BARE_BARE_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice::bench {

// For one thread. Has a connection of its own.
class BareClient {
 public:
  // Each call sends a copy of `floats`, as bytes.
  BareClient(const std::string& address, absl::Span<const float> floats);

  // Waits for the connection, and for the answer. DATA_LOSS if that has another size;
  // DEADLINE_EXCEEDED after two minutes.
  absl::Status Echo();

  // Tells the server that no call follows.
  absl::Status Leave();

 private:
  absl::Status Call(const char* method, grpc::ByteBuffer* response);

  const grpc::ByteBuffer request_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_BARE_BARE_CLIENT_H_

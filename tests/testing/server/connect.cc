#include "tests/testing/server/connect.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/vectors.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

std::unique_ptr<ServerConnection> ConnectTo(const std::string& address, const std::string& token,
                                            absl::Duration pull_timeout) {
  GrpcConnectionOptions options;
  options.address = address;
  options.token = token;
  options.connect_timeout = absl::Seconds(30);
  options.pull_timeout = pull_timeout;
  auto connection = ConnectOverGrpc(options);
  EXPECT_TRUE(connection.ok()) << connection.status();
  return connection.ok() ? *std::move(connection) : nullptr;
}

absl::StatusOr<PushOutcome> PushThrough(ServerConnection& connection, const PushHeader& header,
                                        const SharedFloats& gradient) {
  const auto push = connection.StartPush(header, gradient.values.size(), BatchIs::kInHeader);
  push->Send(0, gradient);
  return push->Finish(PushSummary());
}

JoinRequest WorkerRequest(const std::string& name, uint32_t elements) {
  JoinRequest request;
  request.worker = name;
  request.process_nonce = ProcessNonce(7);
  request.layout = ParametersOnly(elements);
  request.optimizer.options = PlainSgd();
  return request;
}

JoinRequest ObserverRequest(const std::string& name, uint32_t elements) {
  JoinRequest request = WorkerRequest(name, elements);
  request.role = SessionRole::kObserver;
  return request;
}

}  // namespace sluice

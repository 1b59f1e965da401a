// A worker that has several TCP connections to each of several servers.

#include <cstdint>
#include <memory>

#include "common/net/address.h"
#include "common/protocol/protocol_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/running_server.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/tcp_connections.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

// Each of two servers holds enough for two connections.
constexpr uint32_t kSize = 2 * 8 * kChunkElements;

Address Loopback() {
  Address address;
  address.host = "127.0.0.1";
  return address;
}

ServerOptions FirstOptions() {
  ServerOptions options;
  options.shard = Sync(1);
  options.shard.snapshots = SnapshotMemory::kPrivate;
  options.listen = Loopback();
  options.servers = 2;
  return options;
}

ReplicaServerOptions ReplicaOptions(const std::string& first) {
  ReplicaServerOptions options;
  options.index = 1;
  options.servers = 2;
  options.leader = first;
  options.listen = Loopback();
  options.snapshots = SnapshotMemory::kPrivate;
  return options;
}

struct Trained {
  Values parameters;
  int connections = 0;  // of the worker to the second server
};

// Two steps of one worker with so many connections to each server.
Trained Train(int connections) {
  RunningServer first(FirstOptions());
  RunningReplica replica(ReplicaOptions(first.address()));
  GrpcConnectionOptions options;
  options.address = first.address();
  options.connections = connections;
  const auto connection = ConnectOverGrpc(options).value();
  absl::StatusOr<Welcome> welcome = absl::UnavailableError("");
  while (absl::IsUnavailable(welcome.status())) {  // until the replica has come
    welcome = connection->Join(WorkerRequest("a", kSize));
  }
  EXPECT_THAT(connection->Initialize(welcome->session, Values(kSize, 10)), IsOk());
  Trained trained;
  trained.parameters.resize(kSize);
  for (uint64_t step = 0; step < 2; ++step) {
    PushHeader header;
    header.session = welcome->session;
    header.sequence = Sequence(step + 1);
    header.step = Step(step);
    header.incarnation = welcome->incarnation;
    header.samples = 1;
    Values gradient(kSize);
    for (uint32_t i = 0; i < kSize; ++i) gradient[i] = static_cast<float>(i % 1009 + step);
    EXPECT_THAT(PushThrough(*connection, header, Share(std::move(gradient))), Applied(step + 1));
    PullRequest pull;
    pull.session = welcome->session;
    pull.min_step = Step(step + 1);
    EXPECT_THAT(connection->StartPull(pull)->Read(absl::MakeSpan(trained.parameters)), IsOk());
  }
  trained.connections = ConnectionsTo(ParseAddress(replica.address())->port);
  EXPECT_THAT(connection->Leave(welcome->session, {}), IsOk());
  EXPECT_EQ(first.exit_code(), 0);
  EXPECT_EQ(replica.exit_code(), 0);
  return trained;
}

TEST(StripedLanesTest, SeveralConnectionsToEachServerBringTheSameParameters) {
  const Trained with_one = Train(1);
  EXPECT_EQ(with_one.connections, 1);
  const Trained with_two = Train(2);
  EXPECT_EQ(with_two.connections, 2);
  EXPECT_TRUE(with_two.parameters == with_one.parameters);
  for (uint32_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(with_two.parameters[i], 10 - static_cast<float>(2 * (i % 1009) + 1)) << i;
  }
}

}  // namespace
}  // namespace sluice

// Encodings that a worker chooses by itself, over real gRPC and links of a pretended speed.

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "common/tensor/shared_memory.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/slow_link.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

constexpr uint32_t kSize = 300000;
constexpr double kSlow = 1e5;  // bytes a second
constexpr double kFast = 1e12;
constexpr int kRounds = AutoEncoding::kRoundsBefore + AutoEncoding::kTransfers + 3;

Values Wave(float scale) {
  Values values(kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * std::sin(static_cast<float>(i));
  return values;
}

// A server of kSize parameters and its only worker.
class GrpcAutoEncodingTest : public ::testing::Test {
 protected:
  static JoinRequest Request() {
    JoinRequest request;
    request.worker = "a";
    request.process_nonce = ProcessNonce(7);
    request.layout = ParametersOnly(kSize);
    request.optimizer.options = SgdOptions{1.0};
    return request;
  }

  static std::unique_ptr<ServerConnection> ConnectTo(const ServerWorld& world) {
    GrpcConnectionOptions options;
    options.address = world.address().ToString();
    auto connection = ConnectOverGrpc(options);
    EXPECT_THAT(connection, IsOk());
    return *std::move(connection);
  }

  std::unique_ptr<ServerConnection> Connect(double link) {
    return std::make_unique<SlowLink>(ConnectTo(world_), link);
  }

  // The parameters after some rounds.
  Values Train(std::unique_ptr<ServerConnection> connection, const std::string& push,
               const std::string& pull, bool early = false) {
    GradientEncoding encoding;
    encoding.choice = *ParseEncodingChoice(push);
    ParameterClient client(std::move(connection), encoding, *ParseEncodingChoice(pull));
    JoinRequest request = Request();
    request.push_encoding = EncodingChoiceName(encoding.choice);
    Values values = Wave(1);
    EXPECT_THAT(client.Join(request, absl::MakeSpan(values)), IsOk());
    for (int round = 1; round <= kRounds; ++round) {
      const SharedFloats gradient = Share(Wave(0.01f * static_cast<float>(round)));
      if (early) client.SendEarly(0, gradient.Part(0, 270000));
      EXPECT_THAT(client.PushPull(gradient, 1, absl::nullopt, absl::MakeSpan(values)), IsOk());
    }
    worker_ = Inspect();
    EXPECT_THAT(client.Leave({}), IsOk());
    return values;
  }

  // What ListWorkers says of the only worker; empty if there is none.
  v1::Worker Inspect() {
    v1::ListWorkersResponse response;
    const auto context = world_.Context();
    EXPECT_TRUE(world_.inspector().ListWorkers(context.get(), {}, &response).ok());
    return response.workers_size() == 0 ? v1::Worker() : response.workers(0);
  }

  ServerWorld world_{Sync(1), ParametersOnly(kSize)};
  v1::Worker worker_;  // as the server saw it last
};

class GrpcAutoEncodingBitsTest : public GrpcAutoEncodingTest,
                                 public ::testing::WithParamInterface<double> {};

TEST_P(GrpcAutoEncodingBitsTest, AutoEndsWithTheBitsOfNone) {
  Values expected;
  {
    ServerWorld world(Sync(1), ParametersOnly(kSize));
    expected = Train(std::make_unique<ShardConnection>(world.shard()), "none", "none");
  }
  EXPECT_EQ(Train(Connect(GetParam()), "auto", "auto"), expected);
}

INSTANTIATE_TEST_SUITE_P(Links, GrpcAutoEncodingBitsTest, ::testing::Values(kSlow, kFast));

TEST_F(GrpcAutoEncodingTest, OnASlowLinkTheSmallestIsChosenAndShown) {
  Train(Connect(kSlow), "auto:bfloat16,top-k:0.01,int8", "auto:bfloat16,int8");
  EXPECT_EQ(worker_.push_encoding(), "auto:float32,bfloat16,top-k:0.01,int8");
  EXPECT_EQ(worker_.chosen_push().encoding(), "top-k:0.01");
  EXPECT_NEAR(worker_.chosen_push().link_bytes_per_second(), kSlow, 1);
  EXPECT_GT(worker_.chosen_push().ratio(), 60);
  EXPECT_GT(worker_.chosen_push().encode_bytes_per_second(), 0);
  EXPECT_GT(worker_.chosen_push().decode_bytes_per_second(), 0);
  EXPECT_EQ(worker_.chosen_pull().encoding(), "int8");
  EXPECT_NEAR(worker_.chosen_pull().ratio(), 3.9, 0.05);
  EXPECT_NEAR(worker_.chosen_pull().link_bytes_per_second(), kSlow, 1);
}

TEST_F(GrpcAutoEncodingTest, OnAFastLinkAllStaysPlain) {
  Train(Connect(kFast), "auto:bfloat16,int8", "auto:bfloat16,int8");
  EXPECT_EQ(worker_.chosen_push().encoding(), "float32");
  EXPECT_EQ(worker_.chosen_pull().encoding(), "float32");
  const TrafficCounters traffic = world_.shard().Describe().traffic;
  EXPECT_GT(traffic.wire_bytes_received, 4u * kSize * (kRounds + 1));
}

TEST_F(GrpcAutoEncodingTest, PartsThatWouldLeaveEarlyAreHeldBackWhileTheLinkIsMeasured) {
  Train(Connect(kSlow), "auto:int8", "none", /*early=*/true);
  EXPECT_EQ(worker_.chosen_push().encoding(), "int8");
  EXPECT_FALSE(worker_.has_chosen_pull());
}

TEST_F(GrpcAutoEncodingTest, NothingIsMeasuredWhileConnectionsAreBeingChosen) {
  auto link = std::make_unique<SlowLink>(ConnectTo(world_), kSlow);
  link->MeasurePushes(1000);
  Train(std::move(link), "auto:int8", "auto:int8");
  EXPECT_FALSE(worker_.has_chosen_push());
  EXPECT_FALSE(worker_.has_chosen_pull());
}

TEST_F(GrpcAutoEncodingTest, TheLinkIsMeasuredOnceConnectionsAreChosen) {
  auto link = std::make_unique<SlowLink>(ConnectTo(world_), kSlow);
  link->MeasurePushes(2);
  Train(std::move(link), "auto:int8", "none");
  EXPECT_EQ(worker_.chosen_push().encoding(), "int8");
}

TEST_F(GrpcAutoEncodingTest, TheTransferOfAPushThatDidNotCountIsNoMeasure) {
  ServerWorld world(Bounded(1, 0), ParametersOnly(kSize));
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice("auto:int8");
  ParameterClient client(std::make_unique<SlowLink>(ConnectTo(world), kSlow), encoding);
  JoinRequest request = Request();
  request.push_encoding = EncodingChoiceName(encoding.choice);
  Values values = Wave(1);
  ASSERT_THAT(client.Join(request, absl::MakeSpan(values)), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  const auto round = [&] {
    return client.PushPull(Share(Wave(0.01f)), 1, absl::nullopt, absl::MakeSpan(values));
  };
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_THAT(world.Push("b", client.step().value(), Wave(0.01f)), IsOk());
    const auto stale = round();
    ASSERT_THAT(stale, IsOk());
    ASSERT_EQ(stale->disposition, Disposition::kStaleDropped);
  }
  for (int i = 0; i < kRounds; ++i) ASSERT_THAT(round(), IsOk());
  v1::ListWorkersResponse response;
  ASSERT_TRUE(world.inspector().ListWorkers(world.Context().get(), {}, &response).ok());
  EXPECT_NEAR(response.workers(0).chosen_push().link_bytes_per_second(), kSlow, 1);
  EXPECT_THAT(client.Leave({}), IsOk());
}

TEST_F(GrpcAutoEncodingTest, OnOneMachineNothingIsMeasuredAndAllIsPlain) {
  Values expected;
  {
    ServerWorld world(Sync(1), ParametersOnly(kSize));
    expected = Train(std::make_unique<ShardConnection>(world.shard()), "none", "none");
  }
  auto connection =
      std::make_unique<SlowLink>(std::make_unique<ShardConnection>(world_.shard()), kSlow);
  EXPECT_EQ(Train(std::move(connection), "auto:int8", "auto:int8"), expected);
  EXPECT_FALSE(worker_.has_chosen_push());
  EXPECT_FALSE(worker_.has_chosen_pull());
}

TEST_F(GrpcAutoEncodingTest, SharedMemoryMeansOneMachine) {
  ShardOptions options = Sync(1);
  options.snapshots = SnapshotMemory::kShared;
  ServerWorld world(options, ParametersOnly(kSize));
  const auto connection = ConnectTo(world);
  JoinRequest request = Request();
  ASSERT_THAT(connection->Join(request), IsOk());
  EXPECT_FALSE(connection->stays_on_machine());
  auto memory = SharedMemory::Create(kSize);
  ASSERT_THAT(memory, IsOk());
  request.memory = *std::move(memory);
  ASSERT_THAT(connection->Join(request), IsOk());
  EXPECT_TRUE(connection->stays_on_machine());
}

}  // namespace
}  // namespace sluice

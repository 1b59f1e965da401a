// Pulls over real gRPC: that are answered, that wait, and that nobody waits for any more.

#include "server/grpc_pull.h"

#include <limits>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/trained_server_test.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

using GrpcPullTest = TrainedServerTest;

TEST(GrpcHonestPullTest, CutsAVectorIntoChunksOfOneMebibyte) {
  const uint32_t size = 2 * kChunkElements + 3;
  ServerWorld world(Sync(1), ParametersOnly(size));
  ASSERT_THAT(world.Join("a"), IsOk());
  Values parameters(size);
  for (uint32_t i = 0; i < size; ++i) parameters[i] = static_cast<float>(i);
  constexpr uint32_t kFront = 250'000;
  const Values front(parameters.begin(), parameters.begin() + kFront);
  const Values back(parameters.begin() + kFront, parameters.end());
  ASSERT_THAT(world.SendParameters({HeaderOf(world.session("a")), ParametersOf(kFront, back),
                                    ParametersOf(0, front)}),
              IsOk());
  const auto pulled = world.Pull("a", 0);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(pulled->chunks, ElementsAre(kChunkElements, kChunkElements, 3));
  EXPECT_EQ(pulled->values, parameters);
}

TEST(GrpcHonestPullTest, SendsNoParametersToWhoHoldsTheLatest) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  v1::PullParamsRequest request;
  request.set_session(world.session("a"));
  request.set_have_step(0);
  const auto pulled = world.PullAs(request);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_TRUE(pulled->header.not_modified());
  EXPECT_TRUE(pulled->values.empty());
}

TEST(GrpcHonestPullTest, AnswersAPullOnceItsStepHasCome) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  absl::StatusOr<Pulled> pulled = absl::UnknownError("not pulled");
  std::thread puller([&] { pulled = world.Pull("a", 1); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  puller.join();
  EXPECT_EQ(pulled->values, Values({0, 1, 2}));
}

TEST_F(GrpcPullTest, ForgetsAPullWhoseDeadlineComesBeforeItsStep) {
  v1::PullParamsRequest request;
  request.set_session(world_.session("a"));
  request.set_min_step(kLargest);
  EXPECT_THAT(world_.PullAs(request, absl::Milliseconds(50)),
              HasCode(absl::StatusCode::kDeadlineExceeded, _));
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 0; }));
}

TEST_F(GrpcPullTest, ForgetsAPullThatItsWorkerCancels) {
  v1::PullParamsRequest request;
  request.set_session(world_.session("a"));
  request.set_min_step(1);
  const auto context = world_.Context();
  const auto reader = world_.stub().PullParams(context.get(), request);
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 1; }));
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 0; }));
}

}  // namespace
}  // namespace sluice

// Pulls over real gRPC: that are answered, that wait, and that nobody waits for any more.

#include "server/rpc/pull.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/encoding/encoding.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/trained_server_test.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// Two pulls wait for the first parameters. When these come, the first is answered, and while that
// lasts a step is made and pulled. The second gets its own step all the same: with several servers
// the others send that one.
TEST(GrpcEncodedPullTest, BringsItsOwnStepWithItsHeaderThoughALaterStepIsEncoded) {
  constexpr uint32_t kSize = 2000;  // as many are encoded
  ShardOptions options = Sync(1);
  options.schedule.warmup_steps = 2;
  ServerWorld world(options, ParametersOnly(kSize));
  ASSERT_THAT(world.Join("a"), IsOk());
  v1::PullParamsRequest request;
  request.set_session(world.session("a"));
  *request.mutable_encoding() = ToProto(*ParseEncoding("float16"));
  const auto pull = [&](const v1::PullParamsRequest& of) {
    const auto context = world.Context();
    const auto reader = world.stub().PullParams(context.get(), of);
    std::vector<v1::PullParamsResponse> messages(2);
    EXPECT_TRUE(reader->Read(&messages[0]) && reader->Read(&messages[1]));
    EXPECT_THAT(FromGrpcStatus(reader->Finish()), IsOk());
    return messages;
  };
  std::vector<v1::PullParamsResponse> later;
  const auto train_and_pull = [&](const absl::StatusOr<PullResult>& first) {
    EXPECT_EQ(first->header.step, Step(0));
    EXPECT_THAT(world.Push("a", 0, Values(kSize, 1)), Applied(1));
    v1::PullParamsRequest next = request;
    next.set_min_step(1);
    later = pull(next);
  };
  world.shard().store().Pull(FromProto(request), train_and_pull);
  std::vector<v1::PullParamsResponse> earlier;
  std::thread waiting([&] { earlier = pull(request); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 2; }));
  auto start = world.shard().store().BeginInitialize(SessionId(world.session("a")));
  ASSERT_THAT(start, IsOk());
  EXPECT_THAT(start->parameters->Add(ChunkOf(0, Values(kSize, 10))), IsOk());
  EXPECT_THAT(FinishOffer(world.shard(), std::move(start->parameters)), IsOk());
  waiting.join();
  EXPECT_EQ(earlier[0].header().step(), 0u);
  EXPECT_EQ(earlier[0].header().learning_rate(), 0.5);
  EXPECT_EQ(earlier[1].chunk().payload().substr(0, 2), std::string("\0\x49", 2));  // 10
  EXPECT_EQ(later[0].header().step(), 1u);
  EXPECT_EQ(later[0].header().learning_rate(), 1);
  EXPECT_EQ(later[1].chunk().payload().substr(0, 2), std::string("\xc0\x48", 2));  // 9.5
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

// ---- Pulls for the parameters to go on with ----

// Two workers, whose parameters are 10 at first.
class GrpcGoOnTest : public ::testing::Test {
 protected:
  ServerWorld& World(const ShardOptions& options) {
    world_ = std::make_unique<ServerWorld>(options);
    for (const char* name : {"a", "b"}) EXPECT_THAT(world_->Join(name), IsOk());
    EXPECT_THAT(world_->Initialize("a", {10, 10, 10}), IsOk());
    return *world_;
  }

  // Begins to ask, and returns once the server lets the worker wait.
  std::thread GoOnLater(const std::string& name, const Values& expected) {
    std::thread waiting([this, name, expected] {
      const auto pulled = world_->GoOn(name);
      ASSERT_THAT(pulled, IsOk());
      EXPECT_EQ(pulled->values, expected);
    });
    EXPECT_TRUE(world_->Await([this] { return world_->shard().Describe().waiting_pulls == 1; }));
    return waiting;
  }

  std::unique_ptr<ServerWorld> world_;
};

TEST_F(GrpcGoOnTest, WaitsInSyncForTheStepAfterTheWorkersOwn) {
  ServerWorld& world = World(Sync(2));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  std::thread a = GoOnLater("a", {8, 8, 8});
  EXPECT_THAT(world.Push("b", 0, {3, 3, 3}), Applied(1));
  a.join();
  EXPECT_EQ(world.GoOn("b")->header.step(), 1u);
}

TEST_F(GrpcGoOnTest, WaitsForThePushThatItComesAfter) {
  ServerWorld& world = World(Sync(2));
  EXPECT_THAT(world.Push("b", 0, {3, 3, 3}), Accepted(0));
  const v1::PushHeader header = world.NextHeader("a", 0);
  std::thread a = GoOnLater("a", {8, 8, 8});
  EXPECT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, 1, 1})}), Applied(1));
  a.join();
}

TEST_F(GrpcGoOnTest, WaitsInBackupAsInSyncButNotForThoseThatComeTooLate) {
  ServerWorld& world = World(Backup(2, 3));
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  std::thread a = GoOnLater("a", {8, 8, 8});
  EXPECT_THAT(world.Push("b", 0, {3, 3, 3}), Applied(1));
  a.join();
  EXPECT_THAT(world.Push("c", 0, {9, 9, 9}), Stale(1, 1));
  EXPECT_EQ(world.GoOn("c")->values, Values({8, 8, 8}));
}

TEST_F(GrpcGoOnTest, WaitsInSspForTheSlowest) {
  ServerWorld& world = World(Ssp(/*slack=*/1, 2));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(world.GoOn("a")->header.step(), 1u);
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
  EXPECT_THAT(world.Push("a", 2, {1, 1, 1}),
              IsError(Reason::kAheadOfOthers, HasSubstr("pull with `after` first")));
  v1::PullParamsRequest ahead;
  ahead.set_session(world.session("a"));
  ahead.set_after(2);
  absl::StatusOr<Pulled> pulled = absl::UnknownError("not pulled");
  std::thread a([&] { pulled = world.PullAs(ahead); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  EXPECT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(3, 2));
  a.join();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->header.step(), 3u);
  EXPECT_EQ(pulled->values, Values({7, 7, 7}));
}

TEST_F(GrpcGoOnTest, WaitsForNobodyInAsyncAndFindsTheWorkersOwnGradient) {
  ServerWorld& world = World(Async(1));
  for (uint64_t step = 0; step < 20; ++step) {
    const v1::PushHeader header = world.NextHeader("a", step);
    std::thread a = GoOnLater("a", Values(3, 9 - static_cast<float>(step)));
    EXPECT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, 1, 1})}), Applied(step + 1));
    a.join();
  }
}

TEST_F(GrpcGoOnTest, EndsWithItsSession) {
  ServerWorld& world = World(Sync(2));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  absl::StatusOr<Pulled> pulled = absl::UnknownError("not pulled");
  std::thread a([&] { pulled = world.GoOn("a"); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  EXPECT_THAT(world.Evict("a"), IsOk());
  a.join();
  EXPECT_THAT(pulled, IsError(Reason::kUnknownSession, _));
}

// ---- Inconsistent reads ----

ShardOptions Inconsistent() {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  return options;
}

TEST(GrpcInconsistentPullTest, SaysThatChunksMayBeOfSeveralSteps) {
  ServerWorld world(Inconsistent());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  const auto pulled = world.Pull("a", 1);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_TRUE(pulled->header.inconsistent());
  EXPECT_EQ(pulled->header.step(), 1u);
  EXPECT_EQ(pulled->values, Values({9, 9, 9}));
}

TEST(GrpcInconsistentPullTest, IsNotSaidOfAConsistentOne) {
  ServerWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  EXPECT_FALSE(world.Pull("a", 0)->header.inconsistent());
}

// Sixteen chunks are more than the network holds: a pull that is not read on is still under way
// when the next step is made.
class GrpcSlowPullTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 16 * kChunkElements;

  // The first and the last element of a pull, between whose first chunk and the others a step is
  // made that subtracts 1 from each.
  std::pair<float, float> PullAcrossAStep(const ShardOptions& options) {
    ServerWorld world(options, ParametersOnly(kSize));
    EXPECT_THAT(world.Join("a"), IsOk());
    Initialize(world);
    v1::PullParamsRequest request;
    request.set_session(world.session("a"));
    const auto context = world.Context();
    const auto reader = world.stub().PullParams(context.get(), request);
    v1::PullParamsResponse message;
    EXPECT_TRUE(reader->Read(&message) && reader->Read(&message));
    const float first = LastElementIn(message.chunk());
    PushOnes(world);
    while (reader->Read(&message)) {
    }
    EXPECT_TRUE(reader->Finish().ok());
    return {first, LastElementIn(message.chunk())};
  }

  // Past gRPC, whose connection is full.
  static void Initialize(ServerWorld& world) {
    auto start = world.shard().store().BeginInitialize(SessionId(world.session("a")));
    EXPECT_THAT(start->parameters->Add(ChunkOf(0, Values(kSize, 10))), IsOk());
    EXPECT_THAT(FinishOffer(world.shard(), std::move(start->parameters)), IsOk());
  }

 private:
  static void PushOnes(ServerWorld& world) {
    world.shard().store().BeginPush(
        FromProto(world.NextHeader("a", 0)), [&world](absl::StatusOr<PushStart> start) {
          EXPECT_THAT(start->push->Add(ChunkOf(0, Values(kSize, 1))), IsOk());
          world.shard().store().FinishPush(
              std::move(start->push),
              [](const absl::StatusOr<PushOutcome>& outcome) { EXPECT_THAT(outcome, Applied(1)); });
        });
    EXPECT_EQ(world.shard().Describe().step, Step(1));
  }
  static float LastElementIn(const v1::TensorChunk& chunk) {
    float element = 0;
    chunk.payload().copy(reinterpret_cast<char*>(&element), sizeof(element),
                         chunk.payload().size() - sizeof(element));
    return element;
  }
};

TEST_F(GrpcSlowPullTest, TakesItsLaterChunksFromALaterStepIfReadsAreInconsistent) {
  EXPECT_EQ(PullAcrossAStep(Inconsistent()), std::make_pair(10.0f, 9.0f));
}

TEST_F(GrpcSlowPullTest, IsAmongTheActivePullsUntilItIsSent) {
  ServerWorld world(Async(1), ParametersOnly(kSize));
  ASSERT_THAT(world.Join("a"), IsOk());
  Initialize(world);
  const SessionId session(world.session("a"));
  EXPECT_THAT(world.shard().store().active_pulls().Sessions(), IsEmpty());
  v1::PullParamsRequest request;
  request.set_session(session.value());
  const auto context = world.Context();
  const auto reader = world.stub().PullParams(context.get(), request);
  v1::PullParamsResponse message;
  EXPECT_TRUE(reader->Read(&message));
  EXPECT_THAT(world.shard().store().active_pulls().Sessions(), ElementsAre(session));
  while (reader->Read(&message)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(world.Await([&] { return world.shard().store().active_pulls().Sessions().empty(); }));
}

TEST_F(GrpcSlowPullTest, ThatItsWorkerCancelsIsNotActiveAnyMore) {
  ServerWorld world(Async(1), ParametersOnly(kSize));
  ASSERT_THAT(world.Join("a"), IsOk());
  Initialize(world);
  v1::PullParamsRequest request;
  request.set_session(world.session("a"));
  const auto context = world.Context();
  const auto reader = world.stub().PullParams(context.get(), request);
  v1::PullParamsResponse message;
  EXPECT_TRUE(reader->Read(&message));
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(world.Await([&] { return world.shard().store().active_pulls().Sessions().empty(); }));
}

TEST_F(GrpcSlowPullTest, BringsOneStepWholeIfTheyAreConsistent) {
  EXPECT_EQ(PullAcrossAStep(Async(1)), std::make_pair(10.0f, 10.0f));
}

// ---- Pulls that nobody waits for any more ----

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

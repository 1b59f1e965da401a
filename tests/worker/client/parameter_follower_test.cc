// An observer's side of the protocol, over both connections to a server: in the same process, and
// gRPC.

#include "worker/client/parameter_follower.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/transport.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;

// A follower, and the parameters that it got last.
struct TestFollower {
  explicit TestFollower(std::unique_ptr<ServerConnection> connection)
      : follower(std::move(connection), ObserverRequest("o"), absl::ZeroDuration()) {}

  // "step 3 of incarnation 1: 7 7 7", "the end", or the error.
  std::string Next(uint64_t every = 1) {
    const auto next = follower.Next(every, absl::MakeSpan(parameters));
    if (!next.ok()) return next.status().ToString();
    if (!next->has_value()) return "the end";
    return absl::StrCat("step ", (*next)->step.value(), " of incarnation ",
                        (*next)->incarnation.value(), ": ", absl::StrJoin(parameters, " "));
  }

  Values parameters = {0, 0, 0};
  ParameterFollower follower;
};

// A job of one worker "a", whose parameters are 10 at first.
class ParameterFollowerTest : public ::testing::TestWithParam<Transport> {
 protected:
  ParameterFollowerTest() {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
  }

  std::unique_ptr<ServerConnection> Connect() { return GetParam()(world_); }

  void MakeStep() {
    const uint64_t step = world_.shard().Describe().step.value();
    EXPECT_THAT(world_.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }

  ServerWorld world_{Async(1)};
};

INSTANTIATE_TEST_SUITE_P(, ParameterFollowerTest, ::testing::Values(&InProcess, &OverGrpc),
                         TransportName);

TEST_P(ParameterFollowerTest, GetsTheNewestStepEachTime) {
  TestFollower follower(Connect());
  EXPECT_EQ(follower.Next(), "step 0 of incarnation 1: 10 10 10");
  MakeStep();
  EXPECT_EQ(follower.Next(), "step 1 of incarnation 1: 9 9 9");
  MakeStep();
  MakeStep();
  EXPECT_EQ(follower.Next(), "step 3 of incarnation 1: 7 7 7");
}

TEST_P(ParameterFollowerTest, WaitsForSoManySteps) {
  TestFollower follower(Connect());
  EXPECT_EQ(follower.Next(), "step 0 of incarnation 1: 10 10 10");
  std::thread waiting([&] { EXPECT_EQ(follower.Next(3), "step 3 of incarnation 1: 7 7 7"); });
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 1; }));
  for (int step = 0; step < 3; ++step) MakeStep();
  waiting.join();
}

TEST_P(ParameterFollowerTest, CountsInNoStep) {
  TestFollower follower(Connect());
  follower.Next();
  EXPECT_EQ(world_.shard().Describe().workers, 1u);
  EXPECT_EQ(world_.shard().Describe().observers, 1u);
  MakeStep();
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
}

TEST_P(ParameterFollowerTest, GetsTheLastStepOnceAndThenTheEnd) {
  TestFollower follower(Connect());
  follower.Next();
  MakeStep();
  ASSERT_THAT(world_.Leave("a"), IsOk());
  EXPECT_EQ(follower.Next(100), "step 1 of incarnation 1: 9 9 9");
  EXPECT_EQ(follower.Next(100), "the end");
  EXPECT_EQ(follower.Next(100), "the end");
}

TEST_P(ParameterFollowerTest, GetsTheEndAtOnceIfItHasTheLastStep) {
  TestFollower follower(Connect());
  MakeStep();
  EXPECT_EQ(follower.Next(), "step 1 of incarnation 1: 9 9 9");
  ASSERT_THAT(world_.Leave("a"), IsOk());
  EXPECT_EQ(follower.Next(), "the end");
}

TEST_P(ParameterFollowerTest, GetsTheNewestStepOfAServerThatDrains) {
  TestFollower follower(Connect());
  follower.Next();
  MakeStep();
  std::thread waiting([&] { EXPECT_EQ(follower.Next(100), "step 1 of incarnation 1: 9 9 9"); });
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().waiting_pulls == 1; }));
  world_.shard().Drain();
  waiting.join();
  EXPECT_EQ(follower.Next(100), "the end");
}

TEST_P(ParameterFollowerTest, JoinsAgainWhenItsSessionHasEnded) {
  TestFollower follower(Connect());
  follower.Next();
  world_.Pass(absl::Seconds(10));  // nobody speaks for it here: its lease ends
  MakeStep();
  EXPECT_EQ(follower.Next(), "step 1 of incarnation 1: 9 9 9");
  EXPECT_EQ(world_.shard().Describe().observers, 1u);
}

TEST_P(ParameterFollowerTest, ReportsWhatWasMeasuredOfTheStepThatItGaveLast) {
  TestFollower follower(Connect());
  EXPECT_THAT(follower.follower.Report({{"test accuracy", 0.25}}), IsOk());
  EXPECT_EQ(world_.shard().Describe().measured.count, 0u) << "nothing was given yet";
  follower.Next();
  MakeStep();
  EXPECT_THAT(follower.follower.Report({{"test accuracy", 0.5}}), IsOk());
  const MeasurementStatus measured = world_.shard().Describe().measured;
  EXPECT_EQ(measured.count, 1u);
  EXPECT_EQ(measured.latest.step, Step(0));
  EXPECT_EQ(measured.latest.results, (Results{{"test accuracy", 0.5}}));
}

TEST_P(ParameterFollowerTest, TellsWhyItMayNotReport) {
  TestFollower follower(Connect());
  follower.Next();
  EXPECT_THAT(follower.follower.Report({{"", 0.5}}),
              IsError(Reason::kBadArgument, HasSubstr("an empty name")));
  MakeStep();
  EXPECT_EQ(follower.Next(1), "step 1 of incarnation 1: 9 9 9");
}

TEST_P(ParameterFollowerTest, LeavesInGoodOrder) {
  { TestFollower(Connect()).Next(); }
  EXPECT_EQ(world_.shard().Describe().observers, 0u);
}

TEST_P(ParameterFollowerTest, TellsWhyItMayNotFollow) {
  JoinRequest request = ObserverRequest("o", 4);
  ParameterFollower follower(Connect(), request, absl::ZeroDuration());
  Values parameters(4, 0);
  EXPECT_THAT(follower.Next(1, absl::MakeSpan(parameters)),
              IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
}

// The follower may compute while the server goes down.
TEST(DrainedServerTest, HasEndedThoughItWasNotAskedMeanwhile) {
  ServerWorld world(Async(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  TestFollower follower(OverGrpc(world));
  EXPECT_EQ(follower.Next(), "step 0 of incarnation 1: 10 10 10");
  world.shard().Drain();
  world.Stop(/*grace=*/absl::Seconds(5));
  EXPECT_EQ(follower.Next(), "the end");
}

TEST(FollowerPatienceTest, EndsIfNoWorkerComes) {
  ServerWorld world(Async(1));
  TestFollower follower(OverGrpc(world));
  EXPECT_THAT(follower.Next(), AllOf(HasSubstr("DEADLINE_EXCEEDED"),
                                     HasSubstr("no worker joined the server within 0")));
}

// A follower of a job that no worker has joined yet, over the twin: time passes while it pauses.
class JobWithoutWorkersTest : public ::testing::Test {
 protected:
  JobWithoutWorkersTest() {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    connection->OnAwaitRetry([this] { pause_(); });
    follower_ = std::make_unique<ParameterFollower>(std::move(connection), ObserverRequest("o"),
                                                    absl::Seconds(10), clock_);
  }

  FakeClock clock_;
  ShardWorld world_{Async(1)};
  std::function<void()> pause_;
  std::unique_ptr<ParameterFollower> follower_;
  Values parameters_ = {0, 0, 0};
};

TEST_F(JobWithoutWorkersTest, IsFollowedOnceAWorkerComes) {
  pause_ = [this] { world_.Start({"a"}); };
  EXPECT_THAT(follower_->Next(1, absl::MakeSpan(parameters_)), IsOk());
  EXPECT_EQ(parameters_, Values({0, 0, 0}));
}

TEST_F(JobWithoutWorkersTest, IsGivenUpAfterSoLong) {
  int pauses = 0;
  pause_ = [&] {
    ++pauses;
    clock_.Advance(absl::Seconds(4));
  };
  EXPECT_THAT(follower_->Next(1, absl::MakeSpan(parameters_)),
              HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 10s")));
  EXPECT_EQ(pauses, 3);
}

// ---- A server that goes ----

// Follows a world through the twin, whose connection breaks when it is told to.
class BrokenConnectionTest : public ::testing::Test {
 protected:
  BrokenConnectionTest() {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    connection_ = connection.get();
    follower_ = std::make_unique<TestFollower>(std::move(connection));
    world_.Start({"a"});
    for (uint64_t step = 0; step < 5; ++step) {
      EXPECT_THAT(world_.Push("a", step, {1, 1, 1}), Applied(step + 1));
    }
    EXPECT_EQ(follower_->Next(), "step 5 of incarnation 1: -5 -5 -5");
  }

  // A later incarnation, which has the first steps of the job.
  static ShardOptions NextIncarnation() {
    ShardOptions options = Async(1);
    options.incarnation = Incarnation(2);
    return options;
  }

  void PushRestored(uint64_t step) {
    PushHeader header = restored_.NextHeader("a", step);
    header.incarnation = Incarnation(2);
    EXPECT_THAT(restored_.PushAs(header, {2, 2, 2}),
                IsOkAndHolds(Field(&PushOutcome::step, Step(step + 1))));
  }

  ShardWorld world_{Async(1)};
  ShardWorld restored_{NextIncarnation()};
  std::unique_ptr<TestFollower> follower_;
  ShardConnection* connection_ = nullptr;
};

TEST_F(BrokenConnectionTest, ContinuesWithTheNextIncarnationOfTheServer) {
  restored_.Start({"a"});
  for (uint64_t step = 0; step < 3; ++step) PushRestored(step);
  connection_->MoveTo(restored_.shard());
  connection_->BreakPulls(1);
  // Its step 5 is lost: the next that it has not seen is 4.
  std::thread pushing([&] {
    while (restored_.shard().Describe().waiting_pulls == 0) std::this_thread::yield();
    PushRestored(3);
  });
  EXPECT_EQ(follower_->Next(), "step 4 of incarnation 2: -8 -8 -8");
  pushing.join();
}

TEST_F(BrokenConnectionTest, PullsAgainInTheSameSessionWhatTheServerEnded) {
  EXPECT_THAT(world_.Push("a", 5, {1, 1, 1}), Applied(6));
  connection_->EndPulls(2);
  int pauses = 0;
  connection_->OnAwaitRetry([&pauses] { ++pauses; });
  EXPECT_EQ(follower_->Next(), "step 6 of incarnation 1: -6 -6 -6");
  EXPECT_EQ(pauses, 2);
  EXPECT_EQ(connection_->joins(), 1);
  EXPECT_EQ(connection_->reconnects(), 0);
}

TEST_F(BrokenConnectionTest, JoinsAgainTwentyTimes) {
  EXPECT_THAT(world_.Push("a", 5, {1, 1, 1}), Applied(6));
  connection_->BreakPulls(1);
  connection_->BreakJoins(20);
  EXPECT_EQ(follower_->Next(), "step 6 of incarnation 1: -6 -6 -6");
  EXPECT_EQ(connection_->joins(), 22);
}

TEST_F(BrokenConnectionTest, GivesUpAfterTwentyTimes) {
  connection_->BreakPulls(1);
  connection_->BreakJoins(21);
  EXPECT_THAT(follower_->Next(), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(connection_->joins(), 22);
}

TEST_F(BrokenConnectionTest, ItIsGoneIfItDoesNotComeBack) {
  connection_->BreakPulls(1);
  connection_->LoseServer();
  EXPECT_THAT(follower_->Next(), AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("come back")));
}

TEST_F(BrokenConnectionTest, ItHasEndedIfItSaidBeforeThatItGoesDown) {
  world_.shard().Drain();
  connection_->BreakPulls(1);
  connection_->LoseServer();
  EXPECT_EQ(follower_->Next(), "the end");
}

}  // namespace
}  // namespace sluice

// A pull that breaks off when a part of the parameters has arrived leaves a mixture of two steps.
// The client neither trains on it, nor pushes it, nor offers it to a server without parameters.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/tensor/shared_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;

::testing::Matcher<const absl::StatusOr<RoundReport>&> Round(uint64_t step,
                                                             Disposition disposition) {
  return IsOkAndHolds(AllOf(Field("step", &RoundReport::step, Step(step)),
                            Field("disposition", &RoundReport::disposition, disposition)));
}

ShardOptions Another(ShardOptions options) {
  options.session_base = SessionId(1000);
  return options;
}

// A worker "a" with three parameters that begin as 10, and another server that it may be moved to.
class TornPullTest : public ::testing::Test {
 protected:
  TornPullTest() {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    twin_ = connection.get();
    client_ = std::make_unique<ParameterClient>(std::move(connection));
  }

  absl::Status Join() { return client_->Join(WorkerRequest("a"), absl::MakeSpan(parameters_)); }

  absl::StatusOr<RoundReport> Push(const Values& gradient) {
    return client_->PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(parameters_));
  }
  // Pushes parameters that the worker has changed by itself, from the memory that it pulls into.
  absl::StatusOr<RoundReport> PushOwn(const Values& own) {
    parameters_ = own;
    return client_->PushPull({parameters_, nullptr}, 1, absl::nullopt, absl::MakeSpan(parameters_));
  }

  // The server ends during the next pull, and the other one takes its place.
  void TearPullAndMove() {
    twin_->TearPull([this] { twin_->MoveTo(other_.shard()); });
  }
  // The same, and nobody offers parameters to the other one for as long as a pull waits.
  void TearPullAndMoveToNobody() {
    twin_->TearPull([this] {
      twin_->MoveTo(other_.shard());
      twin_->DelayPulls(1);
    });
  }

  // The other server knows "a" but not its pushes, as if it had been restored: its parameters
  // are 6.
  void Restore() {
    ASSERT_THAT(other_.JoinAs(WorkerRequest("a")), IsOk());
    ASSERT_THAT(other_.Initialize({6, 6, 6}), IsOk());
  }

  ShardWorld world_{Sync(1)};
  ShardWorld other_{Another(Sync(1))};
  ShardConnection* twin_ = nullptr;
  std::unique_ptr<ParameterClient> client_;
  Values parameters_ = {10, 10, 10};
};

TEST_F(TornPullTest, IsRepeatedUntilTheParametersAreComplete) {
  ASSERT_THAT(Join(), IsOk());
  twin_->TearPull();
  EXPECT_THAT(Push({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({9, 8, 7}));
  EXPECT_TRUE(client_->held().complete());
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 duplicate");
}

TEST_F(TornPullTest, PushesParametersOnceThatItHasPartlyOverwritten) {
  ASSERT_THAT(Join(), IsOk());
  twin_->TearPull();
  EXPECT_THAT(PushOwn({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({9, 8, 7}));
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
}

TEST_F(TornPullTest, PushesNoMixtureToAServerThatHasLostThePush) {
  ASSERT_THAT(Join(), IsOk());
  Restore();
  TearPullAndMove();
  EXPECT_THAT(PushOwn({1, 2, 3}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(parameters_, Values({6, 6, 6}));
  EXPECT_EQ(other_.shard().Describe().counters.received, 0u);
  EXPECT_THAT(PushOwn({1, 1, 1}), Round(1, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({5, 5, 5}));
}

TEST_F(TornPullTest, PushesAGradientAgainToAServerThatHasLostThePush) {
  ASSERT_THAT(Join(), IsOk());
  Restore();
  TearPullAndMove();
  EXPECT_THAT(Push({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({5, 4, 3}));
}

TEST_F(TornPullTest, OffersNoMixtureToAServerWithoutParameters) {
  ASSERT_THAT(Join(), IsOk());
  TearPullAndMoveToNobody();
  EXPECT_THAT(Push({1, 2, 3}),
              HasCode(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr("without parameters"), HasSubstr("--checkpoint-dir"))));
  EXPECT_FALSE(client_->held().complete());
  EXPECT_FALSE(other_.shard().Describe().phase == Phase::kTraining);
}

TEST_F(TornPullTest, OffersNoMixtureOfPushedParametersEither) {
  ASSERT_THAT(Join(), IsOk());
  TearPullAndMoveToNobody();
  EXPECT_THAT(PushOwn({1, 2, 3}),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("without parameters")));
  EXPECT_FALSE(other_.shard().Describe().phase == Phase::kTraining);
}

TEST_F(TornPullTest, TakesTheParametersThatAnotherWorkerOffersToSuchAServer) {
  ASSERT_THAT(Join(), IsOk());
  ASSERT_THAT(other_.Join("b"), IsOk());
  TearPullAndMove();
  std::thread offering([this] {
    const auto waits_or_has_offered = [this] {
      const ShardStatus status = other_.shard().Describe();
      return status.waiting_pulls == 1 || status.phase == Phase::kTraining;
    };
    while (!waits_or_has_offered()) std::this_thread::yield();
    auto start = other_.shard().store().BeginInitialize(other_.session("b"));
    ASSERT_THAT(start, IsOk());
    ASSERT_NE(start->parameters, nullptr) << "a mixture was offered";
    ASSERT_THAT(start->parameters->Add(ChunkOf(0, Values({4, 5, 6}))), IsOk());
    ASSERT_THAT(FinishOffer(other_.shard(), std::move(start->parameters)), IsOk());
  });
  EXPECT_THAT(Push({1, 2, 3}), Round(0, Disposition::kStaleDropped));
  offering.join();
  EXPECT_EQ(parameters_, Values({4, 5, 6}));
}

TEST_F(TornPullTest, DropsAGradientOfAMixtureAndGoesOnWithCompleteParameters) {
  ASSERT_THAT(Join(), IsOk());
  twin_->TearPull([this] { twin_->LoseServer(); });
  EXPECT_THAT(Push({1, 2, 3}), HasCode(absl::StatusCode::kUnavailable, HasSubstr("come back")));
  EXPECT_FALSE(client_->held().complete());
  twin_->FindServer();
  client_->SendEarly(1, Share({7, 7}));
  EXPECT_THAT(Push({7, 7, 7}), Round(1, Disposition::kStaleDropped));
  EXPECT_EQ(parameters_, Values({9, 8, 7}));
  EXPECT_EQ(world_.Counters(), "1 received: 1 accepted");
  EXPECT_THAT(Push({1, 1, 1}), Round(2, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({8, 7, 6}));
}

TEST_F(TornPullTest, LeavesAModelAsItWasIfJoiningFails) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  ASSERT_THAT(world_.Initialize({4, 5, 6}), IsOk());
  twin_->TearPull([this] { twin_->LoseServer(); });
  EXPECT_THAT(Join(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("come back")));
  EXPECT_EQ(parameters_, Values({10, 10, 10}));
}

TEST_F(TornPullTest, KeepsAModelsOwnParametersInTheMemoryOfItsGradientMeanwhile) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  ASSERT_THAT(world_.Initialize({4, 5, 6}), IsOk());
  JoinRequest request = WorkerRequest("a");
  const auto memory = SharedMemory::Create(parameters_.size());
  ASSERT_THAT(memory, IsOk());
  request.memory = *memory;
  twin_->TearPull([&] {
    EXPECT_THAT((*memory)->floats(), ::testing::ElementsAre(10, 10, 10));
    twin_->LoseServer();
  });
  EXPECT_THAT(client_->Join(request, absl::MakeSpan(parameters_)),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("come back")));
  EXPECT_EQ(parameters_, Values({10, 10, 10}));
  EXPECT_THAT((*memory)->floats(), ::testing::ElementsAre(0, 0, 0));
}

TEST_F(TornPullTest, OffersAModelsOwnParametersThoughAPullHadBegunToReplaceThem) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  ASSERT_THAT(world_.Initialize({4, 5, 6}), IsOk());
  TearPullAndMove();
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(parameters_, Values({10, 10, 10}));
  EXPECT_EQ(other_.Parameters(), Values({10, 10, 10}));
}

// A worker whose program has its parameters elsewhere, as the numbers 4, 5, 6, so that the vector
// that is pulled into carries its gradients.
class OneBufferTest : public TornPullTest {
 protected:
  OneBufferTest() {
    client_->RestoreBy([this](absl::Span<float> parameters) {
      ++restored_;
      const Values own = {4, 5, 6};
      std::copy(own.begin(), own.end(), parameters.begin());
      return restores_;
    });
  }

  int restored_ = 0;
  absl::Status restores_;  // what restoring returns
};

TEST_F(OneBufferTest, OffersWhatTheProgramHasAndPushesWhatTheBufferHolds) {
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(parameters_, Values({4, 5, 6}));
  EXPECT_THAT(PushOwn({1, 2, 3}), Round(1, Disposition::kApplied));
  EXPECT_EQ(parameters_, Values({3, 3, 3}));
  EXPECT_EQ(restored_, 1);
}

TEST_F(OneBufferTest, IsNotAskedForParametersThatTheJobHas) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  ASSERT_THAT(world_.Initialize({7, 8, 9}), IsOk());
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(parameters_, Values({7, 8, 9}));
  EXPECT_EQ(restored_, 0);
}

TEST_F(OneBufferTest, OffersParametersAndNoGradientToAServerWithoutParameters) {
  ASSERT_THAT(Join(), IsOk());
  twin_->MoveTo(other_.shard());
  EXPECT_THAT(PushOwn({1, 2, 3}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(other_.Parameters(), Values({4, 5, 6}));
  EXPECT_EQ(parameters_, Values({4, 5, 6}));
}

TEST_F(OneBufferTest, OffersNothingIfTheProgramCannotRestoreItsParameters) {
  ASSERT_THAT(Join(), IsOk());
  restores_ = absl::FailedPreconditionError("the GPU is gone");
  twin_->MoveTo(other_.shard());
  EXPECT_THAT(PushOwn({1, 2, 3}),
              HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("the GPU is gone")));
  EXPECT_FALSE(client_->held().complete());
  EXPECT_FALSE(other_.shard().Describe().phase == Phase::kTraining);
}

TEST_F(OneBufferTest, PushesNoParametersAsAGradientThatAnOfferHasLeft) {
  ASSERT_THAT(Join(), IsOk());
  twin_->TearPull([this] { twin_->LoseServer(); });
  twin_->MoveTo(other_.shard());
  EXPECT_THAT(PushOwn({1, 2, 3}), HasCode(absl::StatusCode::kUnavailable, HasSubstr("come back")));
  EXPECT_FALSE(client_->held().complete());
  twin_->FindServer();
  EXPECT_THAT(PushOwn({4, 5, 6}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(other_.Parameters(), Values({4, 5, 6}));
}

TEST_F(OneBufferTest, OffersParametersAfterAPullThatBrokeOff) {
  ASSERT_THAT(Join(), IsOk());
  TearPullAndMove();
  EXPECT_THAT(PushOwn({1, 2, 3}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(other_.Parameters(), Values({4, 5, 6}));
  EXPECT_EQ(parameters_, Values({4, 5, 6}));
  EXPECT_TRUE(client_->held().complete());
}

// Twice the server is lost with all it has: before a push, and while the worker pulls what another
// has offered to the next server.
TEST_F(TornPullTest, OffersAgainWhatItHasOfferedToAServerThatIsLostMeanwhile) {
  ASSERT_THAT(Join(), IsOk());
  ShardOptions options = Another(Sync(1));
  options.session_base = SessionId(2000);
  ShardWorld third(options);
  ASSERT_THAT(other_.Join("b"), IsOk());
  twin_->MoveTo(other_.shard());
  bool offered = false;
  twin_->BeforeInitialize([&] {
    if (std::exchange(offered, true)) return;
    ASSERT_THAT(other_.Initialize({4, 5, 6}), IsOk());
  });
  twin_->TearPull([&] { twin_->MoveTo(third.shard()); });
  EXPECT_THAT(Push({1, 2, 3}), Round(0, Disposition::kStaleDropped));
  EXPECT_EQ(parameters_, Values({10, 10, 10}));
  EXPECT_EQ(third.Parameters(), Values({10, 10, 10}));
  client_ = nullptr;  // before the third server
}

TEST_F(TornPullTest, IsRepeatedByAnObserverOfTheEnd) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  ASSERT_THAT(world_.Initialize({4, 5, 6}), IsOk());
  ASSERT_THAT(client_->Join(ObserverRequest("o"), absl::MakeSpan(parameters_)), IsOk());
  ASSERT_THAT(world_.Push("b", 0, {1, 1, 1}), Applied(1));
  ASSERT_THAT(world_.Leave("b"), IsOk());
  twin_->TearPull();
  EXPECT_THAT(client_->AwaitEnd(absl::MakeSpan(parameters_)), IsOk());
  EXPECT_EQ(parameters_, Values({3, 4, 5}));
}

// The numbers of the steps are equal, and the parameters are not.
TEST_F(TornPullTest, TakesTheParametersOfAnotherIncarnationThoughItsStepHasTheSameNumber) {
  ASSERT_THAT(Join(), IsOk());
  ShardOptions options = Another(Async(2));
  options.incarnation = Incarnation(2);
  ShardWorld third(options);
  ASSERT_THAT(third.JoinAs(WorkerRequest("a")), IsOk());
  ASSERT_THAT(third.Initialize({6, 6, 6}), IsOk());
  twin_->MoveTo(third.shard());
  EXPECT_THAT(Push({1, 2, 3}), IsOk());
  EXPECT_EQ(client_->step(), Step(0));
  EXPECT_EQ(parameters_, Values({6, 6, 6}));
  // It says of which incarnation its parameters are.
  EXPECT_THAT(Push({1, 2, 3}), Round(0, Disposition::kAccepted));
  client_ = nullptr;  // before the third server
}

}  // namespace
}  // namespace sluice

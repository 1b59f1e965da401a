// The operator's calls over real gRPC.

#include "server/rpc/operator/admin.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Workers "a" and "b" in sync, whose parameters are 10 at first; the learning rate is 1.
class GrpcAdminTest : public ::testing::Test {
 protected:
  GrpcAdminTest() : world_(Sync(2)) {
    for (const char* name : {"a", "b"}) EXPECT_THAT(world_.Join(name), IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
  }

  absl::StatusOr<uint64_t> SetPolicy(const std::string& consistency) {
    const auto response = AnswerToSetPolicy(consistency);
    if (!response.ok()) return response.status();
    return response->step();
  }

  absl::StatusOr<v1::SetPolicyResponse> AnswerToSetPolicy(const std::string& consistency) {
    v1::SetPolicyRequest request;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(consistency, request.mutable_consistency()));
    v1::SetPolicyResponse response;
    const absl::Status status =
        FromGrpcStatus(world_.admin().SetPolicy(world_.Context().get(), request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::StatusOr<uint64_t> SetLearningRate(double learning_rate) {
    v1::SetLearningRateRequest request;
    request.set_learning_rate(learning_rate);
    v1::SetLearningRateResponse response;
    const absl::Status status =
        FromGrpcStatus(world_.admin().SetLearningRate(world_.Context().get(), request, &response));
    if (!status.ok()) return status;
    return response.step();
  }

  absl::StatusOr<uint64_t> Drain() {
    v1::DrainResponse response;
    const absl::Status status =
        FromGrpcStatus(world_.admin().Drain(world_.Context().get(), {}, &response));
    if (!status.ok()) return status;
    return response.step();
  }

  ConsistencyMode mode() { return world_.shard().Describe().consistency.mode; }

  ServerWorld world_;
};

// ---- SetPolicy ----

TEST_F(GrpcAdminTest, SetPolicyHoldsAtOnceBetweenSteps) {
  EXPECT_THAT(SetPolicy("mode: ASYNC"), IsOkAndHolds(0u));
  EXPECT_EQ(mode(), ConsistencyMode::kAsync);
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
}

TEST_F(GrpcAdminTest, SetPolicyWaitsForTheEndOfTheStepUnderWay) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(SetPolicy("mode: ASYNC"), IsOkAndHolds(1u));
  EXPECT_EQ(mode(), ConsistencyMode::kSync);
  EXPECT_THAT(world_.Push("b", 0, {3, 3, 3}), Applied(1));
  EXPECT_THAT(world_.Push("a", 1, {1, 1, 1}), Applied(2));
  EXPECT_EQ(mode(), ConsistencyMode::kAsync);
  EXPECT_EQ(world_.Pull("a", 2)->values, Values({7, 7, 7}));
}

TEST_F(GrpcAdminTest, SetPolicyTakesTheLatestOfThoseThatWait) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(SetPolicy("mode: ASYNC"), IsOkAndHolds(1u));
  EXPECT_THAT(SetPolicy("mode: BOUNDED max_staleness: 0 quorum: 2"), IsOkAndHolds(1u));
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world_.Push("a", 1, {1, 1, 1}), Accepted(1));
  EXPECT_EQ(mode(), ConsistencyMode::kBounded);
}

TEST_F(GrpcAdminTest, SetPolicyTellsTheSessions) {
  EXPECT_THAT(SetPolicy("mode: SSP slack: 3"), IsOkAndHolds(0u));
  EXPECT_EQ(world_.NextEvent("a"), "policy SSP from 0");
  EXPECT_EQ(world_.NextEvent("b"), "policy SSP from 0");
}

TEST_F(GrpcAdminTest, SetPolicyNamesTheFieldThatIsOutOfItsDomain) {
  const auto refused = [](const std::string& sentence) {
    return IsError(Reason::kBadArgument, HasSubstr(sentence));
  };
  EXPECT_THAT(SetPolicy(""), refused("field consistency.mode is 0"));
  EXPECT_THAT(SetPolicy("mode: 77"), refused("field consistency.mode is 77"));
  EXPECT_THAT(SetPolicy("mode: SYNC quorum: 2"), refused("quorum is 2 in sync mode"));
  EXPECT_THAT(SetPolicy("mode: ASYNC order: RANK"), refused("order of reduction is rank"));
  EXPECT_THAT(SetPolicy("mode: SYNC max_step_wait { seconds: -1 }"),
              refused("max_step_wait is -1s"));
  EXPECT_EQ(mode(), ConsistencyMode::kSync);
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
}

TEST_F(GrpcAdminTest, SetPolicyKeepsTheOrderOfReductionThatItDoesNotName) {
  EXPECT_THAT(SetPolicy("mode: SYNC order: RANK"), IsOk());
  const auto kept = AnswerToSetPolicy("mode: SYNC");
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->consistency().order(), v1::RANK);
  EXPECT_EQ(world_.shard().Describe().consistency.order, ReductionOrder::kRank);
  EXPECT_EQ(AnswerToSetPolicy("mode: ASYNC")->consistency().order(), v1::ARRIVAL);
  EXPECT_EQ(AnswerToSetPolicy("mode: SYNC")->consistency().order(), v1::RANK);
  EXPECT_EQ(AnswerToSetPolicy("mode: SYNC order: ARRIVAL")->consistency().order(), v1::ARRIVAL);
  EXPECT_EQ(AnswerToSetPolicy("mode: SYNC")->consistency().order(), v1::ARRIVAL);
}

TEST_F(GrpcAdminTest, SetPolicyTellsTheRulesAndWhatItIgnores) {
  const auto ignored = [this](const std::string& consistency) {
    const auto answer = AnswerToSetPolicy(consistency);
    EXPECT_THAT(answer, IsOk());
    return std::vector<std::string>(answer->ignored().begin(), answer->ignored().end());
  };
  EXPECT_THAT(ignored("mode: SYNC"), ElementsAre());
  EXPECT_THAT(ignored("mode: SYNC quorum: 1"), ElementsAre("quorum"));
  EXPECT_THAT(ignored("mode: SSP quorum: 1 on_max_step_wait: EVICT"),
              ElementsAre("quorum", "on_max_step_wait"));
  EXPECT_THAT(ignored("mode: SYNC max_step_wait { seconds: 1 }"), ElementsAre("max_step_wait"));
  EXPECT_THAT(ignored("mode: ASYNC max_step_wait { seconds: 1 } on_max_step_wait: EVICT"),
              ElementsAre("max_step_wait"));
  EXPECT_THAT(ignored("mode: SYNC max_step_wait { seconds: 1 } on_max_step_wait: PROCEED"),
              ElementsAre());
  const auto cut = AnswerToSetPolicy(
      "mode: BACKUP quorum: 2 max_step_wait { nanos: 1999 } on_max_step_wait: EVICT");
  ASSERT_THAT(cut, IsOk());
  EXPECT_EQ(cut->consistency().quorum(), 2u);
  EXPECT_EQ(cut->consistency().max_step_wait().nanos(), 1000);
  EXPECT_THAT(AnswerToSetPolicy("mode: SYNC max_step_wait { nanos: 999 }"),
              IsError(Reason::kBadArgument, HasSubstr("at least a microsecond")));
}

TEST_F(GrpcAdminTest, SetPolicyBoundsTheStalenessByTheWorkersThatArePresent) {
  const auto bound = [this](const std::string& consistency) {
    const auto answer = AnswerToSetPolicy(consistency);
    EXPECT_THAT(answer, IsOk());
    EXPECT_EQ(world_.shard().Describe().consistency.max_staleness,
              absl::make_optional(answer->consistency().max_staleness()));
    return answer->consistency().max_staleness();
  };
  EXPECT_EQ(bound("mode: BOUNDED"), 4u);
  EXPECT_EQ(bound("mode: BOUNDED quorum: 2"), 2u);
  EXPECT_EQ(bound("mode: BOUNDED max_staleness: 0"), 0u);
  EXPECT_THAT(world_.Join("c"), IsOk());
  EXPECT_EQ(bound("mode: BOUNDED"), 6u);
}

// A caller that leaves these fields out means the protocol's values.
TEST_F(GrpcAdminTest, SetPolicyWithoutQuorumOrSlackMeansOneAndZero) {
  EXPECT_EQ(AnswerToSetPolicy("mode: BACKUP")->consistency().quorum(), 1u);
  EXPECT_EQ(AnswerToSetPolicy("mode: ASYNC")->consistency().quorum(), 1u);
  EXPECT_EQ(AnswerToSetPolicy("mode: SSP")->consistency().slack(), 0u);
}

// ---- SetLearningRate ----

TEST_F(GrpcAdminTest, SetLearningRateHoldsAtOnceBetweenSteps) {
  EXPECT_THAT(SetLearningRate(0.5), IsOkAndHolds(0u));
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(world_.Push("b", 0, {2, 2, 2}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 9, 9}));
}

TEST_F(GrpcAdminTest, SetLearningRateWaitsForTheEndOfTheStepUnderWay) {
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(SetLearningRate(0.5), IsOkAndHolds(1u));
  EXPECT_THAT(world_.Push("b", 0, {2, 2, 2}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
  EXPECT_THAT(world_.Push("a", 1, {2, 2, 2}), Accepted(1));
  EXPECT_THAT(world_.Push("b", 1, {2, 2, 2}), Applied(2));
  EXPECT_EQ(world_.Pull("a", 2)->values, Values({7, 7, 7}));
}

TEST_F(GrpcAdminTest, SetLearningRateRefusesWhatIsNoRate) {
  for (const double rate : {-0.1, std::nan(""), HUGE_VAL, 1e300, 1000001.0}) {
    EXPECT_THAT(
        SetLearningRate(rate),
        IsError(Reason::kBadArgument, HasSubstr("a finite number, at least 0, at most 1000000")));
  }
  EXPECT_THAT(SetLearningRate(0), IsOkAndHolds(0u));
}

TEST_F(GrpcAdminTest, SetLearningRateWithoutALearningRateIsRefusedAndChangesNothing) {
  v1::SetLearningRateResponse response;
  EXPECT_THAT(FromGrpcStatus(world_.admin().SetLearningRate(world_.Context().get(), {}, &response)),
              IsError(Reason::kBadArgument, HasSubstr("field learning_rate is absent")));
  EXPECT_EQ(world_.shard().Describe().learning_rate, 1);
}

TEST(GrpcAdminAveragingTest, SetLearningRateRefusesAJobWhoseWorkersHaveTheirOwn) {
  ServerWorld world(Sync(1));
  v1::JoinRequest averaging = world.RequestOf("a");
  averaging.mutable_optimizer()->mutable_averaging()->set_moving_rate(1);
  averaging.mutable_optimizer()->mutable_averaging()->set_local_steps(4);
  ASSERT_THAT(world.JoinAs(averaging), IsOk());
  v1::SetLearningRateRequest request;
  request.set_learning_rate(0.5);
  v1::SetLearningRateResponse response;
  EXPECT_THAT(
      FromGrpcStatus(world.admin().SetLearningRate(world.Context().get(), request, &response)),
      IsError(Reason::kBadArgument, HasSubstr("apply their own optimizers")));
}

// ---- EvictWorker ----

TEST_F(GrpcAdminTest, EvictWorkerLetsTheStepThatItWasMissingFromGoOn) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world_.Evict("b"), IsOk());
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 9, 9}));
  EXPECT_THAT(world_.Push("a", 1, {1, 1, 1}), Applied(2));
}

TEST_F(GrpcAdminTest, EvictWorkerEndsItsSessionForGood) {
  EXPECT_THAT(world_.Evict("b"), IsOk());
  EXPECT_EQ(world_.NextEvent("b"), "evicted");
  EXPECT_EQ(world_.NextEvent("b"), "OK");
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("b", 0)),
              IsError(Reason::kUnknownSession, HasSubstr("is not open")));
  EXPECT_THAT(world_.Heartbeat("b"), IsError(Reason::kUnknownSession, HasSubstr("is not open")));
  EXPECT_THAT(world_.Join("b"), IsError(Reason::kEvicted, HasSubstr("evicted by the server's")));
}

TEST_F(GrpcAdminTest, EvictWorkerLetsAnotherProcessHaveTheName) {
  EXPECT_THAT(world_.Evict("b"), IsOk());
  v1::JoinRequest another = world_.RequestOf("b");
  another.set_process_nonce(another.process_nonce() + 1);
  EXPECT_THAT(world_.JoinAs(another), IsOk());
  EXPECT_EQ(world_.shard().Describe().workers, 2u);
}

TEST_F(GrpcAdminTest, EvictWorkerRemovesAnObserverToo) {
  ASSERT_THAT(world_.Observe("o"), IsOk());
  EXPECT_THAT(world_.Evict("o"), IsOk());
  EXPECT_EQ(world_.NextEvent("o"), "evicted");
}

TEST_F(GrpcAdminTest, EvictWorkerDoesNotFindWhoTakesNoPart) {
  const auto nobody = [](const std::string& name) {
    return IsError(Reason::kNotFound, HasSubstr("no worker \"" + name + "\" takes part"));
  };
  EXPECT_THAT(world_.Evict("c"), nobody("c"));
  EXPECT_THAT(world_.Evict(""), nobody(""));
  EXPECT_THAT(world_.Evict("b"), IsOk());
  EXPECT_THAT(world_.Evict("b"), nobody("b"));
  EXPECT_THAT(world_.Leave("a"), IsOk());
  EXPECT_THAT(world_.Evict("a"), nobody("a"));
}

TEST_F(GrpcAdminTest, EvictWorkerTellsTheReasonWhateverTheName) {
  std::string name = "x";  // so that the 64th byte is half a character
  for (int i = 0; i < 5000; ++i) name += "é";
  EXPECT_THAT(world_.Evict(name), IsError(Reason::kNotFound, HasSubstr("no worker \"x")));
}

// ---- Drain ----

TEST_F(GrpcAdminTest, DrainTakesNoMoreWorkAndTellsTheLastStep) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(Drain(), IsOkAndHolds(1u));
  EXPECT_EQ(world_.NextEvent("a"), "draining");
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("a", 1)),
              IsError(Reason::kDraining, HasSubstr("draining")));
  EXPECT_THAT(Drain(), IsOkAndHolds(1u));
}

TEST_F(GrpcAdminTest, DrainLetsThePushEndThatIsArriving) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(world_.NextHeader("b", 0)));
  EXPECT_TRUE(world_.Await([this] { return world_.shard().Describe().counters.in_progress == 1; }));
  EXPECT_THAT(Drain(), IsOkAndHolds(0u));
  push->Write(GradientOf(0, {1, 1, 1}));
  push->End();
  const auto answer = push->Answer();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->disposition(), v1::APPLIED);
  EXPECT_EQ(world_.shard().Describe().step, Step(1));
}

// ---- Credentials ----

// A server whose callers must present "secret".
class GrpcAdminTokenTest : public ::testing::Test {
 protected:
  GrpcAdminTokenTest() : world_(Sync(1), ParametersOnly(3), "secret") {
    EXPECT_THAT(world_.Join("a"), IsOk());
  }

  // What each of the calls answers to a caller of that authorization.
  std::vector<absl::Status> AnswersTo(const std::string& authorization) {
    const auto context = [authorization] {
      auto made = std::make_unique<grpc::ClientContext>();
      made->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
      if (!authorization.empty()) made->AddMetadata("authorization", authorization);
      return made;
    };
    v1::SetPolicyRequest policy;
    policy.mutable_consistency()->set_mode(v1::ASYNC);
    v1::SetPolicyResponse policy_set;
    v1::SetLearningRateRequest rate;
    rate.set_learning_rate(1);
    v1::SetLearningRateResponse rate_set;
    v1::EvictWorkerRequest evict;
    evict.set_worker("a");
    v1::EvictWorkerResponse evicted;
    v1::DrainResponse drained;
    v1::Admin::Stub& admin = world_.admin();
    return {FromGrpcStatus(admin.SetPolicy(context().get(), policy, &policy_set)),
            FromGrpcStatus(admin.SetLearningRate(context().get(), rate, &rate_set)),
            FromGrpcStatus(admin.EvictWorker(context().get(), evict, &evicted)),
            FromGrpcStatus(admin.Drain(context().get(), {}, &drained))};
  }

  ServerWorld world_;
};

TEST_F(GrpcAdminTokenTest, RefusesEveryCallWithoutTheTokenAndDoesNothing) {
  EXPECT_THAT(AnswersTo(""),
              Each(IsError(Reason::kBadToken, HasSubstr("the call has no job token"))));
  EXPECT_THAT(AnswersTo("Bearer secreT"),
              Each(IsError(Reason::kBadToken, HasSubstr("is not this server's"))));
  const ShardStatus state = world_.shard().Describe();
  EXPECT_EQ(state.consistency.mode, ConsistencyMode::kSync);
  EXPECT_EQ(state.learning_rate, 1);
  EXPECT_EQ(state.workers, 1u);
  EXPECT_NE(state.phase, Phase::kDraining);
}

TEST_F(GrpcAdminTokenTest, TakesEveryCallWithIt) {
  EXPECT_THAT(AnswersTo("Bearer secret"), Each(IsOk()));
}

}  // namespace
}  // namespace sluice

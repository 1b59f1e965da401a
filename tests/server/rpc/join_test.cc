// Sessions over real gRPC: who is let in, who is not, and what becomes of those whose stream
// breaks.

#include "server/rpc/join.h"

#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/version_log.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/trained_server_test.h"
#include "tests/testing/shard/change_settings.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class GrpcJoinTest : public TrainedServerTest {
 protected:
  // A join of a second worker, who is honest but for `spoil`.
  absl::Status JoinBut(const std::function<void(v1::JoinRequest&)>& spoil) {
    v1::JoinRequest request = world_.RequestOf("b");
    spoil(request);
    return world_.JoinAs(request).status();
  }
};

// ---- Who is let in ----

TEST(GrpcSessionTest, WelcomesAWorker) {
  ServerWorld world(Bounded(2, 5));
  const auto welcome = world.Join("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->session(), 1u);
  EXPECT_EQ(welcome->job_id(), "job");
  EXPECT_EQ(welcome->incarnation(), 1u);
  EXPECT_EQ(welcome->step(), 0u);
  EXPECT_FALSE(welcome->initialized());
  EXPECT_EQ(welcome->last_sequence(), 0u);
  EXPECT_EQ(welcome->consistency().mode(), v1::BOUNDED);
  EXPECT_EQ(welcome->consistency().quorum(), 2u);
  EXPECT_EQ(welcome->consistency().max_staleness(), 5u);
  EXPECT_EQ(welcome->index(), 0u);
  EXPECT_EQ(welcome->workers(), 1u);
  EXPECT_FALSE(welcome->resumed());
  EXPECT_EQ(welcome->lease().seconds(), 10);
}

TEST(GrpcSessionTest, TellsAProcessThatItIsKnownAndAnotherThatItIsNot) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_TRUE(world.Join("a")->resumed());
  v1::JoinRequest another = world.RequestOf("a");
  another.set_process_nonce(another.process_nonce() + 1);
  EXPECT_THAT(world.JoinAs(another), IsError(Reason::kNameTaken, HasSubstr("that of \"a\"")));
  world.Silence("a");
  world.Pass(absl::Seconds(5));
  EXPECT_FALSE(world.JoinAs(another)->resumed());
}

// ---- Versions ----

TEST(GrpcSessionTest, TellsItsRevisionAndItsVersion) {
  ServerWorld world(Sync(1));
  const auto welcome = world.Join("a");  // who states neither
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->protocol(), 4u);
  EXPECT_EQ(welcome->version(), kVersion);
}

TEST(GrpcSessionTest, LetsAWorkerOfItsRevisionAndOfAnyVersionIn) {
  ServerWorld world(Sync(1));
  v1::JoinRequest request = world.RequestOf("a");
  request.set_protocol(1);
  request.set_version("99.0");
  EXPECT_THAT(world.JoinAs(request), IsOk());
}

TEST_F(GrpcJoinTest, RefusesAWorkerOfARevisionThatItDoesNotServeBeforeItReadsTheRest) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                request.set_protocol(99);
                request.set_version("9.9.0");
                request.clear_layout();
              }),
              IsError(Reason::kVersionMismatch,
                      AllOf(HasSubstr("the worker speaks revision 99 of the protocol (Sluice "
                                      "9.9.0), the server serves revisions 0 to 4 (Sluice "),
                            HasSubstr("; upgrade the server"))));
}

TEST_F(GrpcJoinTest, RefusesItInPartsToo) {
  v1::JoinRequest request = world_.RequestOf("b");
  request.set_protocol(99);
  grpc::GenericStub stub(
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials()));
  GenericCall call(stub, "/sluice.v1.ParameterServer/JoinInParts");
  ASSERT_TRUE(call.Write(request.SerializeAsString()));
  EXPECT_FALSE(call.Read().has_value());
  EXPECT_THAT(call.Finish(), IsError(Reason::kVersionMismatch, HasSubstr("of an unknown version")));
}

TEST(VersionLogTest, TellsOfAnotherVersionOnceForEachWorker) {
  VersionLog log;
  EXPECT_EQ(log.Saw("a", "9.9"),
            absl::StrCat("a runs Sluice 9.9, this server ", kVersion,
                         "; they understand each other, but upgrade the older one"));
  EXPECT_EQ(log.Saw("a", "9.9"), "");
  EXPECT_NE(log.Saw("b", "9.9"), "");
  EXPECT_NE(log.Saw("a", "9.8"), "");
}

TEST(VersionLogTest, SaysNothingOfItsOwnVersionOrOfNone) {
  VersionLog log;
  EXPECT_EQ(log.Saw("a", kVersion), "");
  EXPECT_EQ(log.Saw("a", ""), "");
}

TEST(VersionLogTest, EscapesAndCutsWhatAPeerSays) {
  VersionLog log;
  EXPECT_THAT(log.Saw("a\nb", "1\n2"), HasSubstr("a\\nb runs Sluice 1\\n2, this server"));
}

// ---- Who is not let in ----

TEST_F(GrpcJoinTest, NamesTheFirstParameterThatDiffersAndBothShapes) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                v1::LayoutRange& bias = *request.mutable_layout()->mutable_ranges(1);
                bias.set_shape(0, 5);
                bias.set_length(5);
              }),
              IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("tensor 1 is \"fc.bias\" [5]"),
                                                     HasSubstr("the job's is \"fc.bias\" [3]"))));
}

TEST_F(GrpcJoinTest, NamesTheParameterThatAWorkerLacks) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                request.mutable_layout()->mutable_ranges()->RemoveLast();
              }),
              IsError(Reason::kLayoutMismatch, HasSubstr("first that it lacks is \"fc.bias\"")));
}

TEST_F(GrpcJoinTest, NamesTheOptionOfTheOptimizerThatDiffers) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                request.mutable_optimizer()->mutable_sgd()->set_momentum(0.5);
              }),
              IsError(Reason::kOptimizerMismatch, HasSubstr("momentum")));
}

TEST_F(GrpcJoinTest, RefusesAnOptimizerItDoesNotKnow) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.clear_optimizer(); }),
              IsError(Reason::kBadOptimizer, HasSubstr("it knows sgd")));
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                request.mutable_optimizer()->mutable_sgd()->set_learning_rate(kNan);
              }),
              IsError(Reason::kBadOptimizer, HasSubstr("learning_rate")));
}

TEST_F(GrpcJoinTest, RefusesAWorkerOfAnotherJob) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.set_job_id("other"); }),
              IsError(Reason::kWrongJob, HasSubstr("runs job \"job\", not \"other\"")));
}

TEST_F(GrpcJoinTest, RefusesAWorkerOfAJobWithAnAbsurdName) {
  EXPECT_THAT(
      JoinBut([](v1::JoinRequest& request) { request.set_job_id(std::string(1 << 20, 'x')); }),
      IsError(Reason::kWrongJob, HasSubstr("runs job \"job\", not \"xxx")));
}

TEST_F(GrpcJoinTest, RefusesAWorkerWithoutRoleNameOrNonce) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.clear_role(); }),
              IsError(Reason::kBadArgument, HasSubstr("field role")));
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.clear_worker(); }),
              IsError(Reason::kBadArgument, HasSubstr("field worker is a name of 0 bytes")));
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.clear_process_nonce(); }),
              IsError(Reason::kBadArgument, HasSubstr("field process_nonce is 0")));
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.Clear(); }),
              IsError(Reason::kBadArgument, HasSubstr("field role")));
}

TEST_F(GrpcJoinTest, RefusesAVectorBeyondTheLimit) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                v1::LayoutRange& weight = *request.mutable_layout()->mutable_ranges(0);
                weight.set_shape(0, 1u << 31);
                weight.add_shape(1u << 31);
                weight.set_length(uint64_t{1} << 62);
              }),
              IsError(Reason::kBadLayout, HasSubstr("conv.weight")));
}

TEST_F(GrpcJoinTest, RefusesATensorOfTooManyDimensions) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                v1::LayoutRange& weight = *request.mutable_layout()->mutable_ranges(0);
                for (int i = 0; i < 100000; ++i) weight.add_shape(1);
              }),
              IsError(Reason::kBadLayout, HasSubstr("has 100001 dimensions, expected at most 8")));
}

TEST_F(GrpcJoinTest, RefusesALayoutOfAMillionEmptyTensors) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) {
                for (int i = 0; i < 1000000; ++i) request.mutable_layout()->add_ranges();
              }),
              IsError(Reason::kBadLayout, HasSubstr("the layout has 1000002 ranges")));
}

TEST_F(GrpcJoinTest, RefusesAPartOfARequest) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.set_more(true); }),
              IsError(Reason::kBadArgument, HasSubstr("field more is true, expected false; parts "
                                                      "go to JoinInParts")));
}

TEST_F(GrpcJoinTest, RefusesAMessageThatIsNotUtf8) {
  EXPECT_THAT(JoinBut([](v1::JoinRequest& request) { request.set_worker("\xff"); }),
              IsError(Reason::kBadArgument, HasSubstr("the request is not a valid JoinRequest")));
}

TEST(GrpcSessionTest, RefusesAModelThatItsMemoryDoesNotHoldAndWaitsForAnother) {
  ShardOptions options = Sync(1);
  options.max_elements = 3;
  ServerWorld world(options);
  v1::JoinRequest request = world.RequestOf("a");
  v1::LayoutRange& range = *request.mutable_layout()->mutable_ranges(0);
  range.set_shape(0, 1u << 31);
  range.add_shape(1u << 7);
  range.set_length(uint64_t{1} << 38);
  EXPECT_THAT(
      world.JoinAs(request),
      IsError(Reason::kModelTooLarge, HasSubstr("has 274877906944 elements, more than the 3")));
  EXPECT_THAT(world.Join("a"), IsOk());
}

TEST(GrpcSessionTest, RefusesAnObserverBeforeAnyWorker) {
  ServerWorld empty((Sync(1)));
  EXPECT_THAT(empty.Observe("o"),
              IsError(Reason::kNotInitialized, HasSubstr("no worker has joined yet")));
}

TEST(GrpcSessionTest, RefusesAProcessThatItsOperatorRemoved) {
  ServerWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Evict("b"), IsOk());
  EXPECT_THAT(world.Join("b"), IsError(Reason::kEvicted, HasSubstr("b was evicted")));
  v1::JoinRequest another = world.RequestOf("b");
  another.set_process_nonce(another.process_nonce() + 1);
  EXPECT_THAT(world.JoinAs(another), IsOk());
}

// ---- What a session is told ----

TEST(GrpcSessionTest, IsToldThatItWasEvictedAndThenEnds) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  world.Silence("a");
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.NextEvent("a"), "evicted");
  EXPECT_EQ(world.NextEvent("a"), "OK");
}

TEST(GrpcSessionTest, IsToldThatItsOperatorRemovedIt) {
  ServerWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Evict("a"), IsOk());
  EXPECT_EQ(world.NextEvent("a"), "evicted");
  EXPECT_EQ(world.NextEvent("a"), "OK");
}

TEST(GrpcSessionTest, IsToldThatAnotherReplacedIt) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  const auto context = world.Context();
  const auto replacing = world.stub().Join(context.get(), world.RequestOf("a"));
  v1::JoinEvent event;
  ASSERT_TRUE(replacing->Read(&event));
  EXPECT_EQ(event.welcome().session(), world.session("a") + 1);
  EXPECT_EQ(world.NextEvent("a"), "evicted");
  EXPECT_EQ(world.NextEvent("a"), "OK");
  context->TryCancel();
  replacing->Finish();
}

TEST(GrpcSessionTest, IsToldOfNewRulesOnceTheyHold) {
  ServerWorld world(Sync(2));
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {0, 0, 0}), IsOk());
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(ChangeConsistency(world.shard(), Backup(1, 2).consistency), IsOkAndHolds(Step(1)));
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(1));
  for (const char* name : {"a", "b", "o"}) {
    EXPECT_EQ(world.NextEvent(name), "policy BACKUP from 1");
  }
}

// ---- Who goes ----

TEST(GrpcSessionTest, TellsWhoStaysThatTrainingHasFinished) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {0, 0, 0}), IsOk());
  ASSERT_THAT(world.Observe("o"), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world.Leave("a"), IsOkAndHolds(1u));
  EXPECT_EQ(world.NextEvent("o"), "finished 1");
}

// Workers "a" and "b" in sync; the lease is 10 s.
class GrpcLeaseTest : public ::testing::Test {
 protected:
  GrpcLeaseTest() : world_(Sync(2)) {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Join("b"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
  }

  uint64_t step() { return world_.shard().Describe().step.value(); }

  ServerWorld world_;
};

TEST_F(GrpcLeaseTest, WaitsForALostWorkerUntilItsLeaseEnds) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  EXPECT_TRUE(world_.Break("b"));
  world_.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_EQ(step(), 0u);
  world_.Pass(absl::Nanoseconds(1));
  // The thread that answered the push may make the step.
  EXPECT_TRUE(world_.Await([this] { return step() == 1; }));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 9, 9}));
}

TEST_F(GrpcLeaseTest, KnowsAnEvictedWorkersSessionNoMore) {
  EXPECT_TRUE(world_.Break("b"));
  world_.Pass(absl::Seconds(10));
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("b", 0)),
              IsError(Reason::kUnknownSession, HasSubstr("join anew")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 aborted");
}

TEST_F(GrpcLeaseTest, LetsAWorkerReturnWithinItsLeaseAndGoOnWithItsSequence) {
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Accepted(0));
  EXPECT_TRUE(world_.Break("b"));
  world_.Pass(absl::Seconds(9));
  const auto welcome = world_.Join("b");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->session(), 3u);
  EXPECT_EQ(welcome->last_sequence(), 1u);
  EXPECT_TRUE(welcome->initialized());
  world_.Pass(absl::Seconds(100));
  EXPECT_THAT(world_.Push("a", 0, {3, 3, 3}), Applied(1));
  EXPECT_EQ(world_.Pull("b", 1)->values, Values({8, 8, 8}));
}

TEST_F(GrpcLeaseTest, DoesNotTakeTheStreamThatWasReplacedForALostWorker) {
  ASSERT_THAT(world_.Join("b"), IsOk());  // replaces the session, then ends its stream
  world_.Pass(absl::Seconds(100));
  EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
}

TEST_F(GrpcLeaseTest, ForgetsThePushThatAWorkerDiesIn) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Accepted(0));
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(world_.NextHeader("b", 0)));
  push->Write(GradientOf(0, {7}));
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().counters.in_progress == 1; }));
  push->Cancel();
  EXPECT_TRUE(world_.Break("b"));
  world_.Pass(absl::Seconds(10));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 9, 9}));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 aborted");
}

}  // namespace
}  // namespace sluice

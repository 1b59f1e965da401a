// The ParameterServer service as a whole, over real gRPC: what holds for each of its calls.

#include "server/rpc/parameter_service.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/trained_server_test.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kNobody = 999;  // no such session

using GrpcParameterServiceTest = TrainedServerTest;

// ---- Training ----

TEST(GrpcTrainingTest, TrainsTwoWorkersInStep) {
  ServerWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_TRUE(world.Initialize("a", {10, 20, 30})->accepted());
  EXPECT_FALSE(world.Initialize("b", {0, 0, 0})->accepted());
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {3, 4, 5}), Applied(1));
  const auto pulled = world.Pull("b", 1);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->header.step(), 1u);
  EXPECT_EQ(pulled->header.incarnation(), 1u);
  EXPECT_EQ(pulled->values, Values({8, 17, 26}));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
}

// ---- Sessions ----

TEST_F(GrpcParameterServiceTest, RefusesAnUnknownSessionInEveryCall) {
  const auto unknown = IsError(Reason::kUnknownSession, HasSubstr("session 999 is not open"));
  v1::PushHeader header = world_.NextHeader("a", 0);
  header.set_session(kNobody);
  EXPECT_THAT(world_.AnswerToHeader(header), unknown);
  EXPECT_THAT(world_.SendParameters({HeaderOf(kNobody)}), unknown);
  v1::PullParamsRequest pull;
  pull.set_session(kNobody);
  EXPECT_THAT(world_.PullAs(pull), unknown);
  v1::HeartbeatRequest beat;
  beat.set_session(kNobody);
  v1::HeartbeatResponse beaten;
  EXPECT_THAT(FromGrpcStatus(world_.stub().Heartbeat(world_.Context().get(), beat, &beaten)),
              unknown);
  v1::LeaveRequest leave;
  leave.set_session(kNobody);
  EXPECT_THAT(world_.LeaveAs(leave), unknown);
  EXPECT_EQ(world_.Counters(), "1 received: 1 aborted");
}

TEST_F(GrpcParameterServiceTest, RefusesWhatAnObserverSends) {
  ASSERT_THAT(world_.Observe("o"), IsOk());
  const auto refused = IsError(Reason::kNotAWorker, HasSubstr("o joined as an observer"));
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("o", 0)), refused);
  EXPECT_THAT(world_.Initialize("o", Values(7, 5)), refused);
  EXPECT_EQ(world_.Pull("o", 0)->values, Values(7, 10));
}

TEST_F(GrpcParameterServiceTest, RefusesToLeaveTwice) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  EXPECT_THAT(world_.Leave("b"), IsOkAndHolds(0u));
  EXPECT_THAT(world_.Leave("b"), IsError(Reason::kUnknownSession, HasSubstr("is not open")));
}

TEST_F(GrpcParameterServiceTest, TakesSixteenResultsAndRefusesTheSeventeenth) {
  ASSERT_THAT(world_.Join("b"), IsOk());
  v1::LeaveRequest leave;
  leave.set_session(world_.session("b"));
  for (int i = 0; i < 17; ++i) (*leave.mutable_results())[absl::StrCat("result ", i)] = i;
  EXPECT_THAT(world_.LeaveAs(leave),
              IsError(Reason::kBadArgument,
                      HasSubstr("field results has 17 entries, expected at most 16")));
  leave.mutable_results()->erase("result 16");
  EXPECT_THAT(world_.LeaveAs(leave), IsOkAndHolds(0u));
  EXPECT_EQ(world_.shard().results().size(), 16u);
}

TEST_F(GrpcParameterServiceTest, TakesNoResultsOfAnObserverBeforeTrainingHasFinished) {
  ASSERT_THAT(world_.Observe("o"), IsOk());
  v1::LeaveRequest leave;
  leave.set_session(world_.session("o"));
  (*leave.mutable_results())["test accuracy"] = 1;
  EXPECT_THAT(world_.LeaveAs(leave),
              IsError(Reason::kBadArgument, HasSubstr("before training has finished")));
  EXPECT_TRUE(world_.shard().results().empty());
  leave.clear_results();
  EXPECT_THAT(world_.LeaveAs(leave), IsOkAndHolds(0u));
}

// A method that does not exist is gRPC's to refuse.
TEST_F(GrpcParameterServiceTest, RefusesBytesThatAreNoMessage) {
  grpc::GenericStub stub(
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials()));
  const auto answer_to_garbage = [&stub](const std::string& method) {
    GenericCall call(stub, "/sluice.v1.ParameterServer/" + method);
    call.Write("\xff\xff\xff");
    call.WritesDone();
    EXPECT_FALSE(call.Read().has_value());
    return call.Finish();
  };
  EXPECT_THAT(answer_to_garbage("PushGradients"), IsError(Reason::kMissingHeader, _));
  EXPECT_THAT(answer_to_garbage("InitializeParams"), IsError(Reason::kMissingHeader, _));
  EXPECT_THAT(answer_to_garbage("OfferConstants"), IsError(Reason::kMissingHeader, _));
  EXPECT_THAT(answer_to_garbage("PullParams"),
              IsError(Reason::kBadArgument, HasSubstr("is not a valid PullParamsRequest")));
  for (const std::string method : {"Join", "Heartbeat", "Leave", "PullConstants"}) {
    EXPECT_THAT(answer_to_garbage(method),
                IsError(Reason::kBadArgument, HasSubstr("the request is not a valid " + method)));
  }
  EXPECT_THAT(answer_to_garbage("NoSuchMethod"), HasCode(absl::StatusCode::kUnimplemented, _));
}

// ---- Credentials ----

// A server whose workers must present "secret", and a worker "a" that has joined with it.
class GrpcTokenTest : public ::testing::Test {
 protected:
  using Context = grpc::ClientContext;

  GrpcTokenTest() : world_(Sync(1), ParametersOnly(3), "secret") {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {1, 2, 3}), IsOk());
  }
  void TearDown() override { EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1)); }

  // What each of these calls answers to a caller of that authorization.
  std::vector<absl::Status> AnswersTo(const std::string& authorization) {
    const auto context = [authorization] {
      auto made = std::make_unique<Context>();
      made->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
      if (!authorization.empty()) made->AddMetadata("authorization", authorization);
      return made;
    };
    v1::PullParamsRequest pull;
    pull.set_session(world_.session("a"));
    v1::LeaveRequest leave;
    leave.set_session(world_.session("a"));
    v1::LeaveResponse left;
    v1::HeartbeatRequest beat;
    beat.set_session(world_.session("a"));
    v1::HeartbeatResponse beaten;
    const auto join = context(), parts = context(), pulls = context(), constants = context();
    v1::PullConstantsRequest wanted;
    wanted.set_session(world_.session("a"));
    return {
        FromGrpcStatus(world_.stub().JoinInParts(parts.get())->Finish()),
        FromGrpcStatus(world_.stub().Join(join.get(), world_.RequestOf("a"))->Finish()),
        InitializeStream(context(),
                         [this](Context* c, v1::InitializeParamsResponse* response) {
                           return world_.stub().InitializeParams(c, response);
                         })
            .Answer()
            .status(),
        PushStream(context(),
                   [this](Context* c, v1::PushGradientsResponse* response) {
                     return world_.stub().PushGradients(c, response);
                   })
            .Answer()
            .status(),
        RequestStream<v1::OfferConstantsRequest, v1::OfferConstantsResponse>(
            context(),
            [this](Context* c, v1::OfferConstantsResponse* response) {
              return world_.stub().OfferConstants(c, response);
            })
            .Answer()
            .status(),
        FromGrpcStatus(world_.stub().PullConstants(constants.get(), wanted)->Finish()),
        FromGrpcStatus(world_.stub().PullParams(pulls.get(), pull)->Finish()),
        FromGrpcStatus(world_.stub().Heartbeat(context().get(), beat, &beaten)),
        FromGrpcStatus(world_.stub().Leave(context().get(), leave, &left)),
    };
  }

  ServerWorld world_;
};

TEST_F(GrpcTokenTest, RefusesEveryCallWithoutAToken) {
  EXPECT_THAT(AnswersTo(""),
              Each(IsError(Reason::kBadToken, HasSubstr("the call has no job token"))));
}

TEST_F(GrpcTokenTest, RefusesEveryCallWithAnotherToken) {
  const auto refused = Each(IsError(Reason::kBadToken, HasSubstr("is not this server's")));
  EXPECT_THAT(AnswersTo("Bearer secreT"), refused);
  EXPECT_THAT(AnswersTo("Bearer secret2"), refused);
  EXPECT_THAT(AnswersTo("Bearer "), refused);
  EXPECT_THAT(AnswersTo("Bearer  secret"), refused);
}

TEST_F(GrpcTokenTest, TellsHowToSendATokenThatComesWithoutBearer) {
  const auto refused = Each(IsError(
      Reason::kBadToken, HasSubstr("does not begin with \"Bearer \"; send `authorization:")));
  EXPECT_THAT(AnswersTo("secret"), refused);
  EXPECT_THAT(AnswersTo("bearer secret"), refused);
}

TEST_F(GrpcTokenTest, ChecksTheTokenBeforeItReadsTheMessage) {
  const auto channel =
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials());
  for (const char* method :
       {"Join", "JoinInParts", "Heartbeat", "Leave", "PullParams", "PullLane"}) {
    EXPECT_THAT(CallOnce(channel, absl::StrCat("/sluice.v1.ParameterServer/", method), "\xff"),
                IsError(Reason::kBadToken, _))
        << method;
  }
}

TEST_F(GrpcTokenTest, RefusesACallBeforeItsMessageComes) {
  grpc::GenericStub stub(
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials()));
  for (const char* method : {"ParameterServer/Join", "ParameterServer/JoinInParts",
                             "ParameterServer/PushGradients", "Admin/Drain"}) {
    GenericCall call(stub, absl::StrCat("/sluice.v1.", method));
    EXPECT_EQ(call.Read(), absl::nullopt);
    EXPECT_THAT(call.Finish(), IsError(Reason::kBadToken, _)) << method;
  }
}

TEST_F(GrpcTokenTest, CountsNoPushThatWasNotAllowedIn) {
  AnswersTo("");
  EXPECT_EQ(world_.Counters(), "0 received: ");
}

TEST_F(GrpcTokenTest, ShowsItsStateWithoutAToken) {
  Context context;
  v1::ServerState state;
  EXPECT_TRUE(
      world_.inspector().GetServerState(&context, v1::GetServerStateRequest(), &state).ok());
  EXPECT_EQ(state.workers(), 1u);
}

// ---- Requests ----

TEST(GrpcRequestTest, ACallWhoseRequestDoesNotComeInTimeEnds) {
  RpcLimits limits;
  limits.request = absl::Seconds(3);
  ServerWorld world(Sync(1), ParametersOnly(3), "", limits);
  grpc::GenericStub stub(
      grpc::CreateChannel(world.address().ToString(), grpc::InsecureChannelCredentials()));
  GenericCall watch(stub, "/sluice.v1.Inspector/WatchState");
  watch.Write("");
  EXPECT_TRUE(watch.Read().has_value());
  for (const char* method :
       {"/sluice.v1.Inspector/GetServerState", "/sluice.v1.Inspector/WatchState",
        "/sluice.v1.ParameterServer/Heartbeat", "/grpc.health.v1.Health/Check"}) {
    GenericCall call(stub, method);
    EXPECT_EQ(call.Read(), absl::nullopt);
    EXPECT_THAT(call.Finish(), HasCode(absl::StatusCode::kDeadlineExceeded,
                                       HasSubstr("request has not come within 3s")))
        << method;
  }
  // One whose request has come may last.
  EXPECT_THAT(world.Join("a"), IsOk());
  EXPECT_TRUE(watch.Read().has_value());
}

// ---- Draining ----

TEST(GrpcDrainTest, RefusesWorkAndTellsWhoIsThere) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  world.shard().Drain();
  const auto draining = IsError(Reason::kDraining, HasSubstr("the server is draining"));
  EXPECT_THAT(world.AnswerToHeader(world.NextHeader("a", 0)), draining);
  EXPECT_THAT(world.Pull("a", 0), draining);
  EXPECT_THAT(world.Initialize("a", {1, 2, 3}), draining);
  EXPECT_THAT(world.Join("b"), draining);
  EXPECT_EQ(world.NextEvent("a"), "draining");
  EXPECT_THAT(world.Leave("a"), IsOkAndHolds(0u));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

TEST(GrpcDrainTest, EndsThePullsThatWait) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  absl::StatusOr<Pulled> pulled = absl::UnknownError("not pulled");
  std::thread puller([&] { pulled = world.Pull("a", 1); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  world.shard().Drain();
  puller.join();
  EXPECT_THAT(pulled, IsError(Reason::kDraining, HasSubstr("the server is draining")));
}

}  // namespace
}  // namespace sluice

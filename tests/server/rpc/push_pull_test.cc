// Rounds of one call over real gRPC: by workers that wait, that repeat, and that send what they
// should not.

#include "server/rpc/push_pull.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/full_room_test.h"
#include "tests/testing/server/trained_server_test.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

v1::PushPullRequest RequestOf(const v1::PushHeader& header, const Values& gradient) {
  v1::PushPullRequest request;
  *request.mutable_push() = header;
  *request.mutable_gradient() = PayloadOf(0, gradient);
  return request;
}

absl::StatusOr<v1::PushPullResponse> CallWith(grpc::ClientContext& context, ServerWorld& world,
                                              const v1::PushPullRequest& request) {
  v1::PushPullResponse answer;
  const auto call = world.stub().PushPull(&context, &answer);
  call->Write(request);
  call->WritesDone();
  const absl::Status end = FromGrpcStatus(call->Finish());
  if (!end.ok()) return end;
  return answer;
}

absl::StatusOr<v1::PushPullResponse> Call(ServerWorld& world, const v1::PushPullRequest& request) {
  return CallWith(*world.Context(), world, request);
}

// "DISPOSITION, step N: PARAMETERS".
std::string Shown(const absl::StatusOr<v1::PushPullResponse>& answer) {
  if (!answer.ok()) return answer.status().ToString();
  std::string shown = absl::StrCat(v1::Disposition_Name(answer->push().disposition()), ", step ",
                                   answer->pull().step(), ":");
  if (answer->pull().not_modified()) return absl::StrCat(shown, " not modified");
  const auto elements = TakeChunk(std::make_unique<v1::TensorChunk>(answer->parameters()).get());
  if (!elements.ok()) return elements.status().ToString();
  for (const FloatPiece& piece : elements->pieces) {
    for (const UnalignedFloat& element : piece) absl::StrAppend(&shown, " ", element.value);
  }
  return shown;
}

// ---- Workers that do what they should ----

TEST(GrpcHonestPushPullTest, PushesAGradientAndBringsTheParametersOfItsStep) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  const auto answer = Call(world, RequestOf(world.NextHeader("a", 0), {1, 2, 3}));
  EXPECT_EQ(Shown(answer), "APPLIED, step 1: 9 8 7");
  EXPECT_EQ(answer->push().step(), 1u);
  EXPECT_EQ(answer->pull().incarnation(), answer->push().incarnation());
  EXPECT_EQ(world.Counters(), "1 received: 1 accepted");
}

TEST(GrpcHonestPushPullTest, TakesAVectorThatIsAsLargeAsItMayBe) {
  ServerWorld world(Sync(1), ParametersOnly(kMostPushPullElements));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(kMostPushPullElements, 10)), IsOk());
  const auto request = RequestOf(world.NextHeader("a", 0), Values(kMostPushPullElements, 1));
  const auto answer = Call(world, request);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->parameters().payload(),
            PayloadOf(0, Values(kMostPushPullElements, 9)).payload());
}

TEST(GrpcHonestPushPullTest, WaitsForTheOtherWorkersOfItsStep) {
  ServerWorld world(Sync(2));
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  absl::StatusOr<v1::PushPullResponse> first = absl::UnknownError("not called");
  const auto request = RequestOf(world.NextHeader("a", 0), {1, 1, 1});
  std::thread waiting([&] { first = Call(world, request); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  EXPECT_EQ(Shown(Call(world, RequestOf(world.NextHeader("b", 0), {3, 3, 3}))),
            "APPLIED, step 1: 8 8 8");
  waiting.join();
  EXPECT_EQ(Shown(first), "ACCEPTED, step 1: 8 8 8");
}

// A worker whose call broke off repeats the push, in one call or in two.
TEST(GrpcHonestPushPullTest, CountsAPushOnceWhoseCallWasCancelledAndRepeated) {
  ServerWorld world(Sync(2));
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  const auto request = RequestOf(world.NextHeader("a", 0), {1, 1, 1});
  const auto context = world.Context();
  std::thread waiting([&] {
    EXPECT_EQ(CallWith(*context, world, request).status().code(), absl::StatusCode::kCancelled);
  });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  context->TryCancel();
  waiting.join();
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 0; }));
  EXPECT_THAT(world.SendPush({HeaderOf(request.push()), GradientOf(0, {1, 1, 1})}),
              Repeated(Disposition::kAccepted, 0));
  EXPECT_THAT(world.Push("b", 0, {3, 3, 3}), Applied(1));
  const auto repeated = Call(world, request);
  EXPECT_EQ(Shown(repeated), "DUPLICATE, step 1: 8 8 8");
  EXPECT_EQ(repeated->push().first_disposition(), v1::ACCEPTED);
}

TEST(GrpcHonestPushPullTest, SendsNoParametersToWhoHoldsTheLatest) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  v1::PushPullRequest request = RequestOf(world.NextHeader("a", 0), {1, 1, 1});
  ASSERT_THAT(Call(world, request), IsOk());
  request.mutable_pull()->set_have_step(1);
  const auto repeated = Call(world, request);
  EXPECT_EQ(Shown(repeated), "DUPLICATE, step 1: not modified");
  EXPECT_FALSE(repeated->has_parameters());
}

TEST(GrpcHonestPushPullTest, BringsNewerParametersToAGradientThatIsTooOld) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(Shown(Call(world, RequestOf(world.NextHeader("a", 0), {5, 5, 5}))),
            "STALE_DROPPED, step 1: 9 9 9");
}

TEST(GrpcHonestPushPullTest, BringsTheNewestParametersWhereReadsAreInconsistent) {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  ServerWorld world(options);
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  const auto answer = Call(world, RequestOf(world.NextHeader("a", 0), {1, 2, 3}));
  EXPECT_EQ(Shown(answer), "APPLIED, step 1: 9 8 7");
  EXPECT_TRUE(answer->pull().inconsistent());
}

// ---- Calls that wait at their header, or are cancelled ----

class GrpcFullRoomPushPullTest : public FullRoomTest {
 protected:
  void FinishPushes() {
    EXPECT_THAT(FinishPushOf("b"), Accepted(0));
    EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  }
};

TEST_F(GrpcFullRoomPushPullTest, AddsAGradientThatHasWaitedForItsTurn) {
  absl::StatusOr<v1::PushPullResponse> answer = absl::UnknownError("not called");
  const auto request = RequestOf(world_.NextHeader("d", 0), {4, 4, 4});
  std::thread waiting([&] { answer = Call(world_, request); });
  EXPECT_TRUE(AwaitInProgress(3));
  FinishPushes();
  EXPECT_TRUE(AwaitInProgress(0));
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Applied(1));
  waiting.join();
  EXPECT_EQ(Shown(answer), "ACCEPTED, step 1: 8 8 8");
  EXPECT_EQ(world_.Counters(), "4 received: 4 accepted");
}

TEST_F(GrpcFullRoomPushPullTest, ForgetsAGradientWhoseCallIsCancelledBeforeItsTurn) {
  const auto context = world_.Context();
  const auto request = RequestOf(world_.NextHeader("d", 0), {4, 4, 4});
  std::thread waiting([&] {
    EXPECT_EQ(CallWith(*context, world_, request).status().code(), absl::StatusCode::kCancelled);
  });
  EXPECT_TRUE(AwaitInProgress(3));
  context->TryCancel();
  waiting.join();
  EXPECT_TRUE(AwaitInProgress(2));
  FinishPushes();
  EXPECT_EQ(world_.Counters(), "3 received: 2 accepted, 1 aborted");
}

// AddressSanitizer tells if the call's memory does not outlive what still uses it. The world
// expects that the counters add up, and that no pull is left.
TEST(GrpcCancelledPushPullTest, LosesNothingWhenCallsAreCancelledAtAnyMoment) {
  ServerWorld world(Async(1), ParametersOnly(3), "", {}, BuiltinTransforms(),
                    Executors::OnThreads());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  for (int round = 0; round < 300; ++round) {
    const auto request = RequestOf(world.NextHeader("a", 0), {0, 0, 0});
    const auto context = world.Context();
    auto* const together = new absl::Barrier(2);
    const auto begin = [together] {
      if (together->Block()) delete together;
    };
    std::thread calls([&] {
      begin();
      const absl::Status end = CallWith(*context, world, request).status();
      EXPECT_TRUE(end.ok() || absl::IsCancelled(end)) << end;
    });
    begin();
    context->TryCancel();
    calls.join();
  }
  const auto answer = Call(world, RequestOf(world.NextHeader("a", 0), {1, 2, 3}));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->parameters().payload(), PayloadOf(0, {9, 8, 7}).payload());
}

// ---- Calls that are refused ----

class GrpcPushPullTest : public TrainedServerTest {
 protected:
  v1::PushPullRequest Request() { return RequestOf(world_.NextHeader("a", 0), Values(7, 5)); }
  absl::StatusOr<v1::PushPullResponse> Send(const v1::PushPullRequest& request) {
    return Call(world_, request);
  }
};

TEST_F(GrpcPushPullTest, RefusesARequestWithoutHeader) {
  EXPECT_THAT(Send({}), IsError(Reason::kMissingHeader, HasSubstr("PushPullRequest")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushPullTest, RefusesAHeaderWithAFieldOutOfItsRange) {
  v1::PushPullRequest request = Request();
  request.mutable_push()->set_samples(0);
  EXPECT_THAT(Send(request), IsError(Reason::kBadArgument, HasSubstr("field samples is 0")));
}

TEST_F(GrpcPushPullTest, RefusesAGradientThatIsMissingOrNotWhole) {
  v1::PushPullRequest request = Request();
  request.clear_gradient();
  EXPECT_THAT(Send(request), IsError(Reason::kBadChunk, HasSubstr("is empty")));
  request = Request();
  *request.mutable_gradient() = PayloadOf(0, Values(4, 5));
  EXPECT_THAT(Send(request), IsError(Reason::kBadChunk, HasSubstr("elements 4 to 6 are missing")));
  request = Request();
  *request.mutable_gradient() = PayloadOf(0, Values(8, 5));
  EXPECT_THAT(Send(request), IsError(Reason::kBadChunk, HasSubstr("lies outside the vector")));
  request = Request();
  request.mutable_gradient()->set_payload("123456");
  EXPECT_THAT(Send(request), IsError(Reason::kBadChunk, HasSubstr("expected a multiple of 4")));
  EXPECT_EQ(world_.Counters(), "4 received: 4 rejected");
}

TEST_F(GrpcPushPullTest, RefusesAGradientThatTheNetworkChanged) {
  v1::PushPullRequest request = Request();
  request.mutable_gradient()->set_checksum(1);
  EXPECT_THAT(Send(request), IsError(Reason::kCorruptChunk, HasSubstr("checksum")));
}

TEST_F(GrpcPushPullTest, RefusesAGradientThatIsNotFinite) {
  v1::PushPullRequest request = Request();
  *request.mutable_gradient() =
      PayloadOf(0, {5, 5, 5, 5, 5, std::numeric_limits<float>::infinity(), 5});
  EXPECT_THAT(Send(request), IsError(Reason::kNotFinite, HasSubstr("fc.bias[1]")));
}

TEST_F(GrpcPushPullTest, RefusesAGradientInSharedMemory) {
  v1::PushPullRequest request = Request();
  request.mutable_gradient()->clear_payload();
  request.mutable_gradient()->mutable_shared()->set_count(7);
  EXPECT_THAT(Send(request), IsError(Reason::kBadChunk, HasSubstr("shared memory")));
}

TEST_F(GrpcPushPullTest, RefusesARequestOfMoreBytesThanItMayHave) {
  v1::PushPullRequest request = Request();
  request.mutable_gradient()->set_payload(std::string(kMostPushPullBytes, 'x'));
  EXPECT_THAT(Send(request),
              IsError(Reason::kBadArgument, HasSubstr("it takes at most 524288 bytes")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushPullTest, RefusesASessionThatIsNotOpenOrMayNotPush) {
  v1::PushPullRequest request = Request();
  request.mutable_push()->set_session(999);
  EXPECT_THAT(Send(request), IsError(Reason::kUnknownSession, HasSubstr("999")));
  ASSERT_THAT(world_.Observe("o"), IsOk());
  request.mutable_push()->set_session(world_.session("o"));
  EXPECT_THAT(Send(request), IsError(Reason::kNotAWorker, HasSubstr("observer")));
}

// Its push does not count.
TEST_F(GrpcPushPullTest, RefusesACallOfASessionThatHasTooManyPulls) {
  v1::PullParamsRequest late;
  late.set_session(world_.session("a"));
  late.set_min_step(1000);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::PullParamsResponse>>> pulls;
  for (size_t i = 0; i < PullLimits::kMostOfWorker; ++i) {
    contexts.push_back(world_.Context());
    pulls.push_back(world_.stub().PullParams(contexts.back().get(), late));
  }
  EXPECT_TRUE(world_.Await(
      [&] { return world_.shard().Describe().waiting_pulls == PullLimits::kMostOfWorker; }));
  EXPECT_THAT(Send(Request()), IsError(Reason::kTooManyPulls, HasSubstr("64")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& pull : pulls) pull->Finish();
}

TEST(GrpcLargePushPullTest, RefusesAModelOfOneElementMoreThanFits) {
  constexpr uint32_t kSize = kMostPushPullElements + 1;
  ServerWorld world(Sync(1), ParametersOnly(kSize));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(kSize, 10)), IsOk());
  EXPECT_THAT(Call(world, RequestOf(world.NextHeader("a", 0), Values(kSize, 1))),
              IsError(Reason::kBadArgument,
                      HasSubstr("a model of 16385 elements on one server; it takes at most")));
}

TEST(GrpcUninitializedPushPullTest, TellsThatThereAreNoParameters) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(Call(world, RequestOf(world.NextHeader("a", 0), {1, 1, 1})),
              IsError(Reason::kNotInitialized, HasSubstr("initialize them first")));
}

}  // namespace
}  // namespace sluice

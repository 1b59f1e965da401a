// Pushes over real gRPC, by workers that send what they should not.

#include "server/rpc/push.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/full_room_test.h"
#include "tests/testing/server/trained_server_test.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class GrpcPushTest : public TrainedServerTest {
 protected:
  v1::PushHeader Header() { return world_.NextHeader("a", 0); }

  // A push of an honest header and these messages.
  absl::StatusOr<PushOutcome> PushOf(std::vector<v1::PushGradientsRequest> messages) {
    messages.insert(messages.begin(), HeaderOf(Header()));
    return world_.SendPush(messages);
  }
};

void AddMean(uint64_t offset, uint64_t count, float decay, v1::RunningMean* mean) {
  mean->set_offset(offset);
  mean->set_count(count);
  mean->set_decay(decay);
}

TEST(GrpcHonestPushTest, TakesTheChunksOfAPushInAnyOrder) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  EXPECT_THAT(world.SendPush({HeaderOf(world.NextHeader("a", 0)), GradientOf(2, {3}),
                              GradientOf(0, {1}), GradientOf(1, {2})}),
              Applied(1));
  EXPECT_EQ(world.Pull("a", 1)->values, Values({9, 8, 7}));
}

TEST_F(GrpcPushTest, RefusesAPushOfNoMessages) {
  EXPECT_THAT(world_.SendPush({}),
              IsError(Reason::kMissingHeader, HasSubstr("the push has no header")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesAPushThatBeginsWithAChunk) {
  EXPECT_THAT(world_.SendPush({GradientOf(0, Values(7, 5))}),
              IsError(Reason::kMissingHeader, HasSubstr("send it before the chunks")));
}

TEST_F(GrpcPushTest, RefusesAPushThatBeginsWithAnEmptyMessage) {
  EXPECT_THAT(world_.SendPush({v1::PushGradientsRequest()}),
              IsError(Reason::kMissingHeader, HasSubstr("the push has no header")));
}

TEST_F(GrpcPushTest, RefusesASecondHeaderInAPush) {
  const v1::PushHeader header = Header();
  EXPECT_THAT(world_.SendPush({HeaderOf(header), GradientOf(0, Values(4, 5)), HeaderOf(header)}),
              IsError(Reason::kBadArgument, HasSubstr("after the header holds no chunk")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesAnEmptyMessageAmongTheChunks) {
  EXPECT_THAT(PushOf({v1::PushGradientsRequest()}),
              IsError(Reason::kBadArgument, HasSubstr("after the header holds no chunk")));
}

TEST_F(GrpcPushTest, RefusesAChunkThatReachesOutOfTheVector) {
  EXPECT_THAT(PushOf({GradientOf(5, Values(3, 5))}),
              IsError(Reason::kBadChunk,
                      HasSubstr("3 elements at offset 5 lies outside the vector of 7 elements")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesAChunkWhoseOffsetWouldOverflow) {
  EXPECT_THAT(PushOf({GradientOf(kLargest, Values(7, 5))}),
              IsError(Reason::kBadChunk, HasSubstr("lies outside the vector")));
}

TEST_F(GrpcPushTest, RefusesAChunkThatOverlapsAnother) {
  EXPECT_THAT(
      PushOf({GradientOf(0, Values(4, 5)), GradientOf(3, Values(4, 5))}),
      IsError(Reason::kBadChunk, HasSubstr("4 elements at offset 3 overlaps elements before 4")));
}

TEST_F(GrpcPushTest, RefusesAPushThatLacksAChunk) {
  EXPECT_THAT(PushOf({GradientOf(0, Values(4, 5))}),
              IsError(Reason::kBadChunk, HasSubstr("elements 4 to 6 are missing: 4 of 7 arrived")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesAPushWithoutChunks) {
  EXPECT_THAT(PushOf({}), IsError(Reason::kBadChunk, HasSubstr("elements 0 to 6 are missing")));
}

TEST_F(GrpcPushTest, RefusesAnEmptyChunk) {
  EXPECT_THAT(PushOf({GradientOf(0, {})}), IsError(Reason::kBadChunk, HasSubstr("is empty")));
}

TEST_F(GrpcPushTest, RefusesAPayloadOfBrokenElements) {
  v1::PushGradientsRequest message;
  message.mutable_chunk()->set_payload("123456");
  EXPECT_THAT(
      PushOf({message}),
      IsError(Reason::kBadChunk, HasSubstr("offset 0 has 6 bytes, expected a multiple of 4")));
}

TEST_F(GrpcPushTest, NamesTheParameterThatIsNotANumber) {
  EXPECT_THAT(PushOf({GradientOf(0, {1, 1, 1, 1, 1, kNan, kNan})}),
              IsError(Reason::kNotFinite, HasSubstr("fc.bias[1] is nan")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, NamesTheParameterThatIsInfinite) {
  EXPECT_THAT(PushOf({GradientOf(4, Values(3, 1)), GradientOf(0, {1, 1, 1, -kInfinity})}),
              IsError(Reason::kNotFinite, HasSubstr("conv.weight[3] is -inf")));
}

TEST_F(GrpcPushTest, RefusesAGradientOfAStepThatIsStillToCome) {
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("a", 1)),
              IsError(Reason::kFutureStep,
                      HasSubstr("the gradient is of step 1, the server is at step 0")));
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("a", kLargest)),
              IsError(Reason::kFutureStep, HasSubstr(absl::StrCat("step ", kLargest))));
  EXPECT_EQ(world_.Counters(), "2 received: 2 rejected");
}

TEST_F(GrpcPushTest, RefusesANumberlessPush) {
  v1::PushHeader header = Header();
  header.set_sequence(0);
  EXPECT_THAT(world_.AnswerToHeader(header),
              IsError(Reason::kBadArgument, HasSubstr("field sequence is 0")));
  header = Header();
  header.set_samples(0);
  EXPECT_THAT(world_.AnswerToHeader(header),
              IsError(Reason::kBadArgument, HasSubstr("field samples is 0, expected at least 1")));
}

TEST_F(GrpcPushTest, RefusesAStalePushAtItsHeaderWhileTheStreamIsOpen) {
  CompleteStep();
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("a", 0)), Stale(1, 1));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 stale");
}

TEST_F(GrpcPushTest, RefusesAPushOfAnotherIncarnationAtItsHeader) {
  v1::PushHeader header = world_.NextHeader("a", 1000);
  header.set_incarnation(kLargest);
  EXPECT_THAT(world_.AnswerToHeader(header), Stale(0, 0));
}

TEST_F(GrpcPushTest, AnswersARepeatedPushAtItsHeader) {
  const v1::PushHeader header = Header();
  EXPECT_THAT(world_.SendPush({HeaderOf(header), GradientOf(0, Values(7, 1))}), Applied(1));
  EXPECT_THAT(world_.AnswerToHeader(header), Repeated(Disposition::kApplied, 1));
  EXPECT_EQ(world_.Counters(), "2 received: 1 accepted, 1 duplicate");
}

// Its sender may have meant to say more of it, or to give it up.
TEST_F(GrpcPushTest, DoesNotCountAPushThatBreaksWhenAllOfItsChunksAreThere) {
  const auto received = [this] { return world_.shard().Describe().traffic.wire_bytes_received; };
  for (int i = 0; i < 20; ++i) {
    const v1::PushGradientsRequest header = HeaderOf(Header());
    const v1::PushGradientsRequest gradient = GradientOf(0, Values(7, 5));
    const uint64_t all = received() + header.ByteSizeLong() + gradient.ByteSizeLong();
    const auto push = world_.OpenPush();
    push->Write(header);
    push->Write(gradient);
    EXPECT_TRUE(world_.Await([&] { return received() == all; }));
    push->Cancel();
    EXPECT_THAT(push->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  }
  EXPECT_EQ(world_.Counters(), "20 received: 20 aborted");
}

TEST_F(GrpcPushTest, RefusesAMessageAboveFourMebibytes) {
  const auto refused = PushOf({GradientOf(0, Values((4 << 20) / 4))});
  EXPECT_THAT(refused, HasCode(absl::StatusCode::kResourceExhausted,
                               HasSubstr("larger than max (4194314 vs. 4194304)")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 aborted");
}

TEST(GrpcGuardedPushTest, LeavesOutAGradientThatIsNotFiniteIfToldTo) {
  ShardOptions options = Sync(2);
  options.guards.skip_not_finite = true;
  ServerWorld world(options);
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  const v1::PushHeader header = world.NextHeader("a", 0);
  EXPECT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, kNan, 1})}), Skipped(0));
  EXPECT_THAT(world.AnswerToHeader(header), Repeated(Disposition::kSkipped, 0));
  EXPECT_THAT(world.Push("b", 0, {1, 2, 3}), Applied(1));
  EXPECT_EQ(world.Pull("a", 1)->values, Values({9, 8, 7}));
  EXPECT_EQ(world.Counters(), "3 received: 1 accepted, 1 skipped, 1 duplicate");
}

TEST(GrpcGuardedPushTest, RefusesAGradientWhoseNormIsTooLarge) {
  ShardOptions options = Sync(1);
  options.guards.max_push_norm = 5;
  ServerWorld world(options);
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  EXPECT_THAT(world.Push("a", 0, {3, 4, 1}),
              IsError(Reason::kNormTooLarge, HasSubstr("this server takes at most 5")));
  EXPECT_THAT(world.Push("a", 0, {3, 4, 0}), Applied(1));
}

// ---- A push that learns of its batch at the end ----

TEST(GrpcSummaryTest, CountsTheSamplesOfItsSummary) {
  ShardOptions options = Sync(2);
  options.consistency.reduction = Reduction::kWeightedMean;
  ServerWorld world(options);
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  EXPECT_THAT(world.SendPush({HeaderOf(world.NextHeader("a", 0)), GradientOf(0, {4, 4, 4}),
                              SummaryOf(3, 0.25f)}),
              Accepted(0));
  EXPECT_THAT(world.Push("b", 0, {0, 0, 8}), Applied(1));
  EXPECT_EQ(world.Pull("a", 1)->values, Values({7, 7, 5}));
  EXPECT_EQ(world.shard().Sessions()[0].loss, 0.25f);
}

// ---- Running means ----

// In the header, and in the summary.
TEST(GrpcRunningMeansTest, FollowThePushesOfStaleWorkers) {
  const Layout layout =
      LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}, {"var", 1, RangeKind::kStatistic}});
  ServerWorld world(Async(1), layout);
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10}), IsOk());
  v1::PushHeader header = world.NextHeader("a", 0);
  AddMean(1, 1, 0.5, header.add_running_means());
  EXPECT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, 2, 3})}), Applied(1));
  EXPECT_EQ(world.Pull("a", 1)->values, Values({9, 7, 3}));
  v1::PushGradientsRequest summary = SummaryOf(1);
  AddMean(1, 2, 0.25, summary.mutable_summary()->add_running_means());
  EXPECT_THAT(
      world.SendPush({HeaderOf(world.NextHeader("b", 0)), GradientOf(0, {1, 2, 3}), summary}),
      Applied(2, 1));
  EXPECT_EQ(world.Pull("a", 2)->values, Values({8, 3.75, 3.75}));
}

TEST(GrpcRunningMeansTest, AreRefusedInParametersAndBeyondTheVector) {
  const Layout layout = LayoutOf({{"w", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}});
  ServerWorld world(Async(1), layout);
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 10, 10, 10, 10}), IsOk());
  const struct {
    uint64_t offset, count;
    const char* wrong;
  } cases[] = {
      {0, 1, "elements 0 to 1 have elements of \"w\", which is parameter, expected statistic"},
      {1, 2, "are a part of a tensor"},
      {3, 1, "are a part of a tensor"},
      {2, 3, "have elements of \"b\""},
      {4, 1, "have elements of \"b\""},
      {5, 1, "are not in the vector, which has 5"},
      {2, kLargest - 2, "are not in the vector"},
  };
  for (const auto& c : cases) {
    v1::PushHeader header = world.NextHeader("a", 0);
    AddMean(c.offset, c.count, 0.5, header.add_running_means());
    EXPECT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, Values(5, 1))}),
                IsError(Reason::kBadArgument, HasSubstr(c.wrong)));
  }
  EXPECT_EQ(world.Counters(), "7 received: 7 rejected");
  EXPECT_EQ(world.Pull("a", 0)->values, Values(5, 10));
}

TEST_F(GrpcPushTest, RefusesAChunkAfterTheSummary) {
  EXPECT_THAT(PushOf({GradientOf(0, Values(4, 5)), SummaryOf(1), GradientOf(4, Values(3, 5))}),
              IsError(Reason::kBadArgument, HasSubstr("nothing may follow the summary")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesASecondSummary) {
  EXPECT_THAT(PushOf({GradientOf(0, Values(7, 5)), SummaryOf(1), SummaryOf(1)}),
              IsError(Reason::kBadArgument, HasSubstr("nothing may follow the summary")));
}

TEST_F(GrpcPushTest, RefusesASummaryOfNoSamples) {
  EXPECT_THAT(PushOf({GradientOf(0, Values(7, 5)), SummaryOf(0)}),
              IsError(Reason::kBadArgument, HasSubstr("field samples is 0, expected at least 1")));
}

TEST_F(GrpcPushTest, RefusesASummaryInPlaceOfAChunk) {
  EXPECT_THAT(PushOf({SummaryOf(1)}),
              IsError(Reason::kBadChunk, HasSubstr("elements 0 to 6 are missing")));
}

TEST_F(GrpcPushTest, RefusesASummaryInPlaceOfTheHeader) {
  EXPECT_THAT(world_.SendPush({SummaryOf(1)}),
              IsError(Reason::kMissingHeader, HasSubstr("the push has no header")));
}

// ---- A push that waits at its header ----

class GrpcFullRoomTest : public FullRoomTest {
 protected:
  // A push of "d", all of it, which comes as far as its header.
  std::unique_ptr<PushStream> OpenWaitingPush() {
    auto push = world_.OpenPush();
    push->Write(HeaderOf(world_.NextHeader("d", 0)));
    push->Write(GradientOf(0, {4, 4, 4}));
    push->End();
    EXPECT_TRUE(AwaitInProgress(3));
    EXPECT_EQ(BytesOf("d"), 0u);
    return push;
  }
};

TEST_F(GrpcFullRoomTest, LetsAPushInOnceAnotherIsOver) {
  const auto waiting = OpenWaitingPush();
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(AnswerTo(*waiting), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
  EXPECT_EQ(world_.Counters(), "4 received: 4 accepted");
}

// Once "a" has contributed, the lowest rank is inside, and its place is free for others.
TEST_F(GrpcFullRoomTest, KeepsAPlaceForTheLowestRankThatTheStepWaitsFor) {
  const auto waiting = OpenWaitingPush();
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Accepted(0));
  EXPECT_THAT(AnswerTo(*waiting), Accepted(0));
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
}

TEST_F(GrpcFullRoomTest, ForgetsAPushThatIsCancelledWhileItWaits) {
  const auto waiting = OpenWaitingPush();
  waiting->Cancel();
  EXPECT_THAT(waiting->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_EQ(world_.Counters(), "3 received: 2 accepted, 1 aborted");
  EXPECT_THAT(world_.Push("d", 0, {4, 4, 4}), Accepted(0));
  EXPECT_THAT(world_.Push("a", 0, {2, 2, 2}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
}

// Nothing else has to happen for it.
TEST_F(GrpcFullRoomTest, ForgetsAWaitingPushOnceItsStreamHasEnded) {
  const auto waiting = OpenWaitingPush();
  waiting->Cancel();
  EXPECT_TRUE(AwaitInProgress(2));
  EXPECT_EQ(world_.shard().Describe().counters.aborted, 1u);
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
}

TEST_F(GrpcFullRoomTest, LetsFourPushesOfASessionWait) {
  std::vector<std::unique_ptr<PushStream>> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(world_.OpenPush());
    v1::PushHeader header = world_.NextHeader("d", 0);
    header.add_attachments()->set_type("ballast");
    header.mutable_attachments(0)->set_data(std::string(60000, 'x'));
    waiting.back()->Write(HeaderOf(header));
  }
  EXPECT_TRUE(AwaitInProgress(6));
  EXPECT_THAT(world_.AnswerToHeader(world_.NextHeader("d", 0)),
              IsError(Reason::kBadArgument, HasSubstr("4 pushes of session 4 wait already")));
  for (const auto& push : waiting) push->Cancel();
  EXPECT_TRUE(AwaitInProgress(2));
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_EQ(world_.Counters(), "7 received: 2 accepted, 1 rejected, 4 aborted");
}

TEST_F(GrpcFullRoomTest, EndsAPushWhoseSessionEndsWhileItWaits) {
  const auto waiting = OpenWaitingPush();
  EXPECT_THAT(world_.Evict("d"), IsOk());
  EXPECT_THAT(waiting->Answer(), IsError(Reason::kUnknownSession, HasSubstr("is not open")));
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_THAT(world_.Push("a", 0, {4, 4, 4}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
  EXPECT_EQ(world_.Counters(), "4 received: 3 accepted, 1 aborted");
}

TEST_F(GrpcFullRoomTest, EndsTheStreamOfAPushWhoseSessionEndsWhileItArrivesAndLetsAnotherIn) {
  const auto waiting = OpenWaitingPush();
  EXPECT_THAT(world_.Evict("b"), IsOk());
  EXPECT_THAT(inside_["b"]->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(AnswerTo(*waiting), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({8, 8, 8}));
  EXPECT_EQ(world_.Counters(), "4 received: 3 accepted, 1 aborted");
}

TEST_F(GrpcFullRoomTest, TellsAPushThatWaitsThatTheServerGoesDown) {
  const auto waiting = OpenWaitingPush();
  world_.shard().Drain();
  EXPECT_THAT(waiting->Answer(), IsError(Reason::kDraining, HasSubstr("draining")));
  // What was let in before may end.
  EXPECT_THAT(FinishPushOf("b"), Accepted(0));
  EXPECT_THAT(FinishPushOf("c"), Accepted(0));
  EXPECT_EQ(world_.Counters(), "3 received: 2 accepted, 1 rejected");
}

TEST_F(GrpcPushTest, ForgetsAPushThatItsWorkerCancels) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  push->Write(GradientOf(0, Values(4, 5)));
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().counters.in_progress == 1; }));
  push->Cancel();
  EXPECT_THAT(push->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_EQ(world_.Counters(), "1 received: 1 aborted");
}

}  // namespace
}  // namespace sluice

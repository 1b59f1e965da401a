// Pushes over real gRPC, by workers that send what they should not.

#include "server/grpc_push.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/trained_server_test.h"

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
  EXPECT_EQ(world_.Books(), "1 received: 1 rejected");
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
  EXPECT_EQ(world_.Books(), "1 received: 1 rejected");
}

TEST_F(GrpcPushTest, RefusesAnEmptyMessageAmongTheChunks) {
  EXPECT_THAT(PushOf({v1::PushGradientsRequest()}),
              IsError(Reason::kBadArgument, HasSubstr("after the header holds no chunk")));
}

TEST_F(GrpcPushTest, RefusesAChunkThatReachesOutOfTheVector) {
  EXPECT_THAT(PushOf({GradientOf(5, Values(3, 5))}),
              IsError(Reason::kBadChunk,
                      HasSubstr("3 elements at offset 5 lies outside the vector of 7 elements")));
  EXPECT_EQ(world_.Books(), "1 received: 1 rejected");
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
  EXPECT_EQ(world_.Books(), "1 received: 1 rejected");
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
  EXPECT_EQ(world_.Books(), "1 received: 1 rejected");
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
  EXPECT_EQ(world_.Books(), "2 received: 2 rejected");
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
  EXPECT_EQ(world_.Books(), "2 received: 1 accepted, 1 stale");
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
  EXPECT_EQ(world_.Books(), "2 received: 1 accepted, 1 duplicate");
}

TEST_F(GrpcPushTest, RefusesAMessageAboveFourMebibytes) {
  const auto refused = PushOf({GradientOf(0, Values((4 << 20) / 4))});
  EXPECT_THAT(refused, HasCode(absl::StatusCode::kResourceExhausted,
                               HasSubstr("larger than max (4194314 vs. 4194304)")));
  EXPECT_EQ(world_.Books(), "1 received: 1 aborted");
}

TEST_F(GrpcPushTest, ForgetsAPushThatItsWorkerCancels) {
  const auto push = world_.OpenPush();
  push->Write(HeaderOf(Header()));
  push->Write(GradientOf(0, Values(4, 5)));
  EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().books.in_progress == 1; }));
  push->Cancel();
  EXPECT_THAT(push->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_EQ(world_.Books(), "1 received: 1 aborted");
}

}  // namespace
}  // namespace sluice

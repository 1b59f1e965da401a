// Which error a pull returns whose lanes ended before all elements had arrived.

#include "worker/connection/grpc/parameter_sink.h"

#include "common/base/error.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/wire/chunk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// A pull of four elements.
class GrpcParameterSinkTest : public ::testing::Test {
 protected:
  absl::Status Take(uint64_t offset, const Values& values) {
    return sink_.Take(EncodeChunk(offset, Share(values), Checksums::kOff));
  }

  const TransformRegistry transforms_ = BuiltinTransforms();
  Values parameters_ = {0, 0, 0, 0};
  GrpcParameterSink sink_{"PullParams", absl::MakeSpan(parameters_), transforms_, nullptr};
};

TEST_F(GrpcParameterSinkTest, AllElementsAreEnoughHoweverALaneEnded) {
  sink_.BeginLane();
  EXPECT_FALSE(sink_.wrote());
  EXPECT_THAT(Take(2, {3, 4}), IsOk());
  EXPECT_TRUE(sink_.wrote());
  EXPECT_THAT(Take(0, {1, 2}), IsOk());
  sink_.EndLane(absl::UnavailableError("it broke"));
  EXPECT_THAT(sink_.AwaitComplete(), IsOk());
  EXPECT_EQ(parameters_, Values({1, 2, 3, 4}));
}

TEST_F(GrpcParameterSinkTest, CountsTheBytesOfWholeMessages) {
  const grpc::ByteBuffer first = EncodeChunk(0, Share(Values{1, 2}), Checksums::kOff);
  const grpc::ByteBuffer second = EncodeChunk(2, Share(Values{3, 4}), Checksums::kOff);
  EXPECT_EQ(sink_.bytes(), 0u);
  EXPECT_THAT(sink_.Take(first), IsOk());
  EXPECT_EQ(sink_.bytes(), first.Length());
  EXPECT_THAT(sink_.Take(second), IsOk());
  EXPECT_EQ(sink_.bytes(), first.Length() + second.Length());
}

TEST_F(GrpcParameterSinkTest, WithoutLanesTheServerHasLeftElementsOut) {
  EXPECT_THAT(Take(0, {1, 2}), IsOk());
  EXPECT_THAT(sink_.AwaitComplete(),
              IsError(Reason::kBadChunk, HasSubstr("elements 2 to 3 are missing")));
}

// Without it, the wait would last for ever.
TEST_F(GrpcParameterSinkTest, ACancelledPullDoesNotWaitForItsLanes) {
  sink_.BeginLane();
  EXPECT_THAT(Take(0, {1, 2}), IsOk());
  sink_.Cancel();
  EXPECT_THAT(sink_.AwaitComplete(), HasCode(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

TEST_F(GrpcParameterSinkTest, ALaneThatBrokeMayHaveLostThem) {
  sink_.BeginLane();
  sink_.EndLane(absl::UnavailableError("it broke"));
  EXPECT_THAT(sink_.AwaitComplete(),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("parameters was lost: it broke")));
}

TEST_F(GrpcParameterSinkTest, ADamagedChunkIsToldOfThoughAnotherLaneBrokeBefore) {
  sink_.BeginLane();
  sink_.BeginLane();
  sink_.EndLane(absl::UnavailableError("it broke"));
  sink_.EndLane(MakeError(Reason::kCorruptChunk, "its checksum is wrong"));
  EXPECT_THAT(sink_.AwaitComplete(), IsError(Reason::kCorruptChunk, HasSubstr("checksum")));
}

TEST_F(GrpcParameterSinkTest, ADamagedChunkIsToldOfThoughAnotherLaneBreaksLater) {
  sink_.BeginLane();
  sink_.BeginLane();
  sink_.EndLane(MakeError(Reason::kCorruptChunk, "its checksum is wrong"));
  sink_.EndLane(absl::UnavailableError("it broke"));
  EXPECT_THAT(sink_.AwaitComplete(), IsError(Reason::kCorruptChunk, HasSubstr("checksum")));
}

}  // namespace
}  // namespace sluice

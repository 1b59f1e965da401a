// The messages that answer pulls belong to the step that they are sent for, whatever other pulls
// still use.

#include "server/rpc/snapshot_chunks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/chunk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

// As many as are encoded, and between two values of bfloat16.
constexpr uint32_t kSize = 2000;
constexpr float kBetween = 1 + 1.0f / 512;
constexpr SessionId kSession(1);

std::shared_ptr<const Snapshot> SnapshotOf(uint64_t step, float value) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = Step(step);
  snapshot->values = FloatBuffer(kSize);
  std::fill(snapshot->values.span().begin(), snapshot->values.span().end(), value);
  return snapshot;
}

Values Decoded(const ChunkMessages& messages) {
  Values values(kSize);
  for (const grpc::ByteBuffer& message : messages.all) {
    const auto chunk = DecodeChunk<v1::PullParamsResponse>(message);
    EXPECT_THAT(chunk, IsOk());
    const auto to = absl::MakeSpan(values).subspan(chunk->offset, chunk->size());
    if (chunk->encoded.has_value()) {
      EXPECT_THAT(DecodeValues(*chunk->encoded, to, BuiltinTransforms()), IsOk());
      continue;
    }
    uint64_t done = 0;
    for (const FloatPiece& piece : chunk->pieces) {
      CopyTo(piece, to.subspan(done, piece.size()));
      done += piece.size();
    }
  }
  return values;
}

class SnapshotChunksTest : public ::testing::Test {
 protected:
  SnapshotChunksTest() {
    world_.Start({"a"});
    chunks_.Begin(kSession);
  }

  // The answers come at once, since the shard's executors are inline.
  std::shared_ptr<const ChunkMessages> Of(const std::shared_ptr<const Snapshot>& snapshot,
                                          Checksums checksums) {
    std::shared_ptr<const ChunkMessages> chunks;
    chunks_.Get(snapshot, checksums, [&](auto ready) { chunks = ready.value(); });
    return chunks;
  }

  absl::StatusOr<SnapshotChunks::Chunks> Of(const std::shared_ptr<const Snapshot>& snapshot,
                                            const Encoding& encoding, SessionId session) {
    absl::StatusOr<SnapshotChunks::Chunks> encoded;
    chunks_.Get(snapshot, encoding, session, [&](auto ready) { encoded = std::move(ready); });
    return encoded;
  }

  ShardWorld world_{Sync(1), ParametersOnly(kSize)};
  const TransformRegistry transforms_ = BuiltinTransforms();
  SnapshotChunks chunks_{transforms_, world_.shard().store()};
};

TEST_F(SnapshotChunksTest, AreThoseOfTheNewStepWhileASlowPullStillUsesThoseOfTheOld) {
  const auto old = Of(SnapshotOf(1, 1), Checksums::kOff);
  EXPECT_EQ(Decoded(*Of(SnapshotOf(2, 2), Checksums::kOff)), Values(kSize, 2));
  EXPECT_EQ(Decoded(*old), Values(kSize, 1));
}

TEST_F(SnapshotChunksTest, AreSharedByThePullsOfAStep) {
  const auto snapshot = SnapshotOf(1, 1);
  const auto first = Of(snapshot, Checksums::kOn);
  EXPECT_EQ(Of(snapshot, Checksums::kOn), first);
}

TEST_F(SnapshotChunksTest, HaveChecksumsOnlyForThoseWhoAskForThem) {
  const auto snapshot = SnapshotOf(1, 1);
  const auto with = Of(snapshot, Checksums::kOn);
  const auto without = Of(snapshot, Checksums::kOff);
  EXPECT_GT(with->all[0].Length(), without->all[0].Length());
}

// What rounding loses of a step is added to the next step, once.
TEST_F(SnapshotChunksTest, AStepThatIsPulledTwiceIsEncodedOnce) {
  const Encoding bfloat16 = *ParseEncoding("bfloat16");
  const auto snapshot = SnapshotOf(1, kBetween);
  const auto first = Of(snapshot, bfloat16, kSession);
  const auto second = Of(snapshot, bfloat16, kSession);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(*second, *first);
}

// With several servers each of them must send the pull's step, whatever it has encoded already.
TEST_F(SnapshotChunksTest, AreThoseOfThePullsStepThoughALaterOneIsEncoded) {
  const Encoding bfloat16 = *ParseEncoding("bfloat16");
  const auto later = Of(SnapshotOf(2, 2), bfloat16, kSession);
  const auto older = Of(SnapshotOf(1, 1), bfloat16, kSession);
  ASSERT_THAT(later, IsOk());
  ASSERT_THAT(older, IsOk());
  EXPECT_EQ(Decoded(**older), Values(kSize, 1));
  EXPECT_EQ(Decoded(**later), Values(kSize, 2));
}

TEST_F(SnapshotChunksTest, OfAnOlderStepAreSharedWhileAPullUsesThem) {
  const Encoding bfloat16 = *ParseEncoding("bfloat16");
  const auto old = SnapshotOf(1, kBetween);
  const auto first = Of(old, bfloat16, kSession);
  const auto later = Of(SnapshotOf(2, 2), bfloat16, kSession);
  const auto second = Of(old, bfloat16, kSession);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(*second, *first);
}

TEST_F(SnapshotChunksTest, OfTheLatestStepAreKeptWhenNoPullUsesThemAndOthersAreNot) {
  const Encoding bfloat16 = *ParseEncoding("bfloat16");
  const auto old = SnapshotOf(1, 1);
  const std::weak_ptr<const ChunkMessages> of_old = *Of(old, bfloat16, kSession);
  const std::weak_ptr<const ChunkMessages> latest = *Of(SnapshotOf(2, 2), bfloat16, kSession);
  EXPECT_TRUE(of_old.expired());
  const std::weak_ptr<const ChunkMessages> again = *Of(old, bfloat16, kSession);
  EXPECT_TRUE(again.expired());
  EXPECT_FALSE(latest.expired());
}

// Of a value between two of bfloat16, pulls see it on average, whatever step they ask for.
TEST_F(SnapshotChunksTest, CarryRoundingErrorsOnAlsoToAnOlderStep) {
  const Encoding bfloat16 = *ParseEncoding("bfloat16");
  float sum = 0;
  for (const uint64_t step : {7, 5, 8, 6}) {
    sum += Decoded(**Of(SnapshotOf(step, kBetween), bfloat16, kSession))[0];
  }
  EXPECT_NEAR(sum / 4, kBetween, 1.0f / 2048);
}

TEST_F(SnapshotChunksTest, KnowTheirBytesInEachEncoding) {
  const auto plain = Of(SnapshotOf(1, 1), Checksums::kOff);
  const ChunkBytes& whole = plain->bytes[static_cast<size_t>(ValueTransform::kFloat32)];
  EXPECT_EQ(whole.tensor, 4u * kSize);
  EXPECT_EQ(whole.wire, plain->all[0].Length());
  const auto encoded = Of(SnapshotOf(2, 1), *ParseEncoding("bfloat16"), kSession);
  ASSERT_THAT(encoded, IsOk());
  const BytesByTransform& bytes = (*encoded)->bytes;
  EXPECT_EQ(bytes[static_cast<size_t>(ValueTransform::kBfloat16)].tensor, 4u * kSize);
  EXPECT_EQ(bytes[static_cast<size_t>(ValueTransform::kBfloat16)].wire,
            (*encoded)->all[0].Length());
  EXPECT_EQ(bytes[static_cast<size_t>(ValueTransform::kFloat32)].wire, 0u);
}

}  // namespace
}  // namespace sluice

#include "server/staged_vector.h"

#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::shared_ptr<const Layout> Shared(Layout layout) {
  return std::make_shared<const Layout>(std::move(layout));
}

Values Copy(const StagedVector& vector, size_t size) {
  Values values(size, -1);
  vector.CopyTo(absl::MakeSpan(values));
  return values;
}

TEST(StagedChunkTest, ReadsItsElementsFromTheirBytes) {
  StagedChunk chunk;
  chunk.bytes = std::string("\x00\x00\x80\x3f\x00\x00\x20\xc1", 8);  // little-endian
  EXPECT_THAT(chunk.elements(), ElementsAre(1.0f, -10.0f));
}

TEST(StagedVectorTest, HoldsChunksThatCameInAnyOrder) {
  StagedVector vector(Shared(ParametersOnly(6)));
  EXPECT_THAT(vector.Add(ChunkOf(4, {5, 6})), IsOk());
  EXPECT_THAT(vector.Add(ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(vector.Add(ChunkOf(1, {2, 3, 4})), IsOk());
  EXPECT_THAT(vector.CheckComplete(), IsOk());
  EXPECT_THAT(Copy(vector, 6), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(StagedVectorTest, ShowsItsChunksInTheOrderTheyCame) {
  StagedVector vector(Shared(ParametersOnly(4)));
  ASSERT_THAT(vector.Add(ChunkOf(2, {3, 4})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 2})), IsOk());
  ASSERT_EQ(vector.chunks().size(), 2u);
  EXPECT_EQ(vector.chunks()[0].offset, 2u);
  EXPECT_THAT(vector.chunks()[0].elements(), ElementsAre(3, 4));
  EXPECT_EQ(vector.chunks()[1].offset, 0u);
}

TEST(StagedVectorTest, HasTheNormOfItsParametersAlone) {
  StagedVector vector(Shared(LayoutOf({{"w", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}})));
  EXPECT_EQ(vector.ParameterNorm(), 0);
  ASSERT_THAT(vector.Add(ChunkOf(1, {4, 1000, 1000, -12})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {3})), IsOk());
  EXPECT_EQ(vector.ParameterNorm(), 13);
}

// Bytes of every length, short strings' own storage among them, survive the moves of a growing
// vector.
TEST(StagedVectorTest, HoldsManyChunksOfManyLengths) {
  const uint32_t size = 50 * 51 / 2;
  StagedVector vector(Shared(ParametersOnly(size)));
  Values expected(size);
  std::iota(expected.begin(), expected.end(), 0.0f);
  uint64_t offset = 0;
  for (uint64_t length = 1; length <= 50; ++length) {
    ASSERT_THAT(vector.Add(ChunkOf(offset, absl::MakeSpan(expected).subspan(offset, length))),
                IsOk());
    offset += length;
  }
  EXPECT_EQ(Copy(vector, size), expected);
}

TEST(StagedVectorTest, CountsTheBytesThatArrived) {
  StagedVector vector(Shared(ParametersOnly(6)));
  EXPECT_EQ(vector.bytes(), 0u);
  ASSERT_THAT(vector.Add(ChunkOf(3, {1, 2})), IsOk());
  EXPECT_EQ(vector.bytes(), 8u);
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 2, 3})), IsOk());
  EXPECT_EQ(vector.bytes(), 20u);
}

TEST(StagedVectorTest, SaysWhichElementsAreMissing) {
  StagedVector vector(Shared(ParametersOnly(6)));
  EXPECT_THAT(vector.CheckComplete(),
              IsError(Reason::kBadChunk, HasSubstr("elements 0 to 5 are missing: 0 of 6 arrived")));
  ASSERT_THAT(vector.Add(ChunkOf(0, {1})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(4, {1, 2})), IsOk());
  EXPECT_THAT(vector.CheckComplete(),
              IsError(Reason::kBadChunk, HasSubstr("elements 1 to 3 are missing: 3 of 6 arrived")));
}

TEST(StagedVectorTest, RefusesChunksOutsideTheVector) {
  const auto layout = Shared(ParametersOnly(3));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(3, {1})),
              IsError(Reason::kBadChunk, HasSubstr("outside the vector of 3 elements")));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(0, {1, 2, 3, 4})),
              IsError(Reason::kBadChunk, HasSubstr("chunk of 4 elements at offset 0")));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(std::numeric_limits<uint64_t>::max(), {1, 2})),
              IsError(Reason::kBadChunk, HasSubstr("outside")));
}

TEST(StagedVectorTest, RefusesAnEmptyChunk) {
  StagedVector vector(Shared(ParametersOnly(3)));
  EXPECT_THAT(vector.Add(ChunkOf(0, {})), IsError(Reason::kBadChunk, HasSubstr("is empty")));
}

TEST(StagedVectorTest, RefusesElementsThatArrivedBefore) {
  for (const uint64_t offset : {1, 2, 3}) {
    StagedVector vector(Shared(ParametersOnly(6)));
    ASSERT_THAT(vector.Add(ChunkOf(2, {1, 2})), IsOk());
    EXPECT_THAT(vector.Add(ChunkOf(offset, {1, 2})),
                IsError(Reason::kBadChunk, HasSubstr("overlaps")));
    EXPECT_EQ(vector.bytes(), 8u);
  }
}

TEST(StagedVectorTest, NamesTheTensorAndTheIndexOfWhatIsNotFinite) {
  const auto layout = Shared(LayoutOf({{"conv.weight", 3}, {"bn.mean", 2, RangeKind::kStatistic}}));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(0, {1, 2, kNan})),
              IsError(Reason::kNotFinite, HasSubstr("conv.weight[2] is nan, expected a finite")));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(1, {1, 2, kInfinity, kNan})),
              IsError(Reason::kNotFinite, HasSubstr("bn.mean[0] is inf, expected a finite")));
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(4, {-kInfinity})),
              IsError(Reason::kNotFinite, HasSubstr("bn.mean[1] is -inf, expected a finite")));
}

}  // namespace
}  // namespace sluice

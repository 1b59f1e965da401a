#include "server/aggregation/staged_vector.h"

#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::shared_ptr<const Layout> Shared(Layout layout) {
  return std::make_shared<const Layout>(std::move(layout));
}

Values Copy(StagedVector& vector, size_t size) {
  vector.Seal();
  Values values(size, -1);
  vector.CopyTo(0, absl::MakeSpan(values));
  return values;
}

// A chunk in memory that another process may write.
TensorChunk ForeignChunk(uint64_t offset, const std::shared_ptr<Values>& memory) {
  TensorChunk chunk;
  chunk.offset = offset;
  chunk.pieces = {AsPiece(*memory)};
  chunk.owner = memory;
  chunk.foreign = true;
  return chunk;
}

std::vector<std::pair<uint64_t, Values>> PiecesOf(const StagedVector& vector, uint64_t begin,
                                                  uint64_t end) {
  std::vector<std::pair<uint64_t, Values>> pieces;
  vector.ForEachPiece(begin, end, [&](uint64_t offset, FloatPiece floats) {
    pieces.emplace_back(offset, Values());
    for (const UnalignedFloat& element : floats) pieces.back().second.push_back(element.value);
  });
  return pieces;
}

TEST(StagedVectorTest, HoldsChunksThatCameInAnyOrder) {
  StagedVector vector(Shared(ParametersOnly(6)));
  EXPECT_THAT(vector.Add(ChunkOf(4, {5, 6})), IsOk());
  EXPECT_THAT(vector.Add(ChunkOf(0, {1})), IsOk());
  EXPECT_THAT(vector.Add(ChunkOf(1, {2, 3, 4})), IsOk());
  EXPECT_THAT(vector.CheckComplete(), IsOk());
  EXPECT_THAT(Copy(vector, 6), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(StagedVectorTest, KnowsItsLargestMagnitude) {
  StagedVector vector(Shared(ParametersOnly(4)));
  EXPECT_EQ(vector.largest(), 0);
  ASSERT_THAT(vector.Add(ChunkOf(2, {-5, 3})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 4})), IsOk());
  EXPECT_EQ(vector.largest(), 5);
  EXPECT_FALSE(vector.foreign());
}

TEST(StagedVectorTest, ForeignMemoryThatIsWrittenAfterTheCheckKeepsItsBound) {
  const size_t size = 40000;
  const auto memory = std::make_shared<Values>(size, 2.0f);
  StagedVector vector(Shared(ParametersOnly(size)));
  ASSERT_THAT(vector.Add(ForeignChunk(0, memory)), IsOk());
  EXPECT_TRUE(vector.foreign());
  (*memory)[1] = kNan;
  (*memory)[20000] = -kInfinity;
  (*memory)[20001] = -1;
  (*memory)[size - 1] = 2.5f;
  Values expected(size, 2);
  expected[1] = expected[20000] = expected[size - 1] = 0;
  expected[20001] = -1;
  EXPECT_TRUE(Copy(vector, size) == expected);
  Values shown;
  for (const auto& piece : PiecesOf(vector, 0, size)) {
    EXPECT_EQ(piece.first, shown.size());
    shown.insert(shown.end(), piece.second.begin(), piece.second.end());
  }
  EXPECT_TRUE(shown == expected);
}

TEST(StagedVectorTest, CopiesAPart) {
  StagedVector vector(Shared(ParametersOnly(6)));
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 2})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(2, {3, 4, 5, 6})), IsOk());
  vector.Seal();
  Values part(3, -1);
  vector.CopyTo(1, absl::MakeSpan(part));
  EXPECT_THAT(part, ElementsAre(2, 3, 4));
}

TEST(StagedVectorTest, CopiesASmallPieceOfForeignMemory) {
  const auto memory = std::make_shared<Values>(3, 2.0f);
  StagedVector vector(Shared(ParametersOnly(3)));
  ASSERT_THAT(vector.Add(ForeignChunk(0, memory)), IsOk());
  (*memory)[0] = 1;
  EXPECT_FALSE(vector.foreign());
  EXPECT_THAT(Copy(vector, 3), ElementsAre(2, 2, 2));
}

TEST(StagedVectorTest, CopiesChunksToMemoryOfItsOwn) {
  const auto memory = std::make_shared<FloatBuffer>(40003);
  StagedVector vector(Shared(ParametersOnly(40003)), memory);
  TensorChunk large = ChunkOf(3, Values(40000, 4));
  const std::weak_ptr<const void> received = large.owner;
  ASSERT_THAT(vector.Add(std::move(large)), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 2, 3})), IsOk());
  EXPECT_TRUE(received.expired());
  EXPECT_EQ(vector.largest(), 4);
  vector.Seal();
  Values expected(40003, 4);
  std::iota(expected.begin(), expected.begin() + 3, 1.0f);
  EXPECT_EQ(memory->span(), absl::MakeSpan(expected));
  vector.CopyTo(0, memory->span());  // changes nothing
  EXPECT_TRUE(Copy(vector, 40003) == expected);
}

TEST(StagedVectorTest, LeavesForeignMemoryWhereItIs) {
  const auto memory = std::make_shared<FloatBuffer>(FloatBuffer::Zeroed(40000));
  const auto foreign = std::make_shared<Values>(40000, 2.0f);
  StagedVector vector(Shared(ParametersOnly(40000)), memory);
  ASSERT_THAT(vector.Add(ForeignChunk(0, foreign)), IsOk());
  EXPECT_TRUE(vector.foreign());
  EXPECT_THAT(memory->span(), ::testing::Each(0));
  EXPECT_TRUE(Copy(vector, 40000) == *foreign);
}

TEST(StagedVectorTest, TakesNothingThatIsNotFiniteToMemoryOfItsOwn) {
  StagedVector vector(Shared(ParametersOnly(3)), std::make_shared<FloatBuffer>(3));
  EXPECT_THAT(vector.Add(ChunkOf(0, {1, kNan, 2})),
              IsError(Reason::kNotFinite, HasSubstr("expected a finite number")));
}

TEST(StagedVectorTest, MayHaveSomeChunksInItsOwnAndSomeInForeignMemory) {
  const auto memory = std::make_shared<FloatBuffer>(40002);
  const auto foreign = std::make_shared<Values>(40000, 2.0f);
  StagedVector vector(Shared(ParametersOnly(40002)), memory);
  ASSERT_THAT(vector.Add(ForeignChunk(2, foreign)), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, -1})), IsOk());
  vector.Seal();
  vector.CopyTo(0, memory->span());
  Values expected(40002, 2);
  expected[0] = 1;
  expected[1] = -1;
  EXPECT_EQ(memory->span(), absl::MakeSpan(expected));
}

TEST(StagedVectorTest, SeveralThreadsCopyALargeChunk) {
  ThreadPool threads(3);
  const size_t size = 3 * kPartElements + 5;
  Values values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto memory = std::make_shared<FloatBuffer>(size);
  StagedVector vector(Shared(ParametersOnly(size)), memory);
  ASSERT_THAT(vector.Add(ChunkOf(0, values), &threads), IsOk());
  EXPECT_EQ(memory->span(), absl::MakeSpan(values));
}

TEST(StagedVectorTest, ShowsItsPiecesInTheOrderOfTheirOffsets) {
  StagedVector vector(Shared(ParametersOnly(6)));
  ASSERT_THAT(vector.Add(ChunkOf(4, {5, 6})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {1, 2, 3, 4})), IsOk());
  vector.Seal();
  EXPECT_THAT(PiecesOf(vector, 0, 6),
              ElementsAre(Pair(0u, Values{1, 2, 3, 4}), Pair(4u, Values{5, 6})));
  EXPECT_THAT(PiecesOf(vector, 1, 5), ElementsAre(Pair(1u, Values{2, 3, 4}), Pair(4u, Values{5})));
  EXPECT_THAT(PiecesOf(vector, 2, 3), ElementsAre(Pair(2u, Values{3})));
  EXPECT_THAT(PiecesOf(vector, 4, 4), IsEmpty());
}

TEST(StagedVectorTest, HoldsAChunkThatLiesInPieces) {
  const auto values = std::make_shared<const Values>(Values{1, 2, 3, 4});
  const absl::Span<const float> span = *values;
  TensorChunk chunk;
  chunk.offset = 1;
  chunk.pieces = {AsPiece(span.subspan(2, 2)), AsPiece(span.subspan(0, 1))};
  chunk.owner = values;
  StagedVector vector(Shared(ParametersOnly(4)));
  ASSERT_THAT(vector.Add(ChunkOf(0, {9})), IsOk());
  ASSERT_THAT(vector.Add(std::move(chunk)), IsOk());
  EXPECT_THAT(Copy(vector, 4), ElementsAre(9, 3, 4, 1));
}

TEST(StagedVectorTest, KeepsTheMemoryOfItsChunksWhileItLives) {
  constexpr uint32_t kMany = 20000;
  TensorChunk chunk = ChunkOf(0, Values(kMany, 1));
  const std::weak_ptr<const void> memory = chunk.owner;
  {
    StagedVector vector(Shared(ParametersOnly(kMany)));
    ASSERT_THAT(vector.Add(std::move(chunk)), IsOk());
    EXPECT_FALSE(memory.expired());
  }
  EXPECT_TRUE(memory.expired());
}

// A buffer of 64 KiB may be received together with a chunk of a few bytes, and be kept by it.
TEST(StagedVectorTest, CopiesASmallChunk) {
  TensorChunk chunk = ChunkOf(0, {1, 2});
  const std::weak_ptr<const void> memory = chunk.owner;
  StagedVector vector(Shared(ParametersOnly(2)));
  ASSERT_THAT(vector.Add(std::move(chunk)), IsOk());
  EXPECT_TRUE(memory.expired());
  EXPECT_THAT(Copy(vector, 2), ElementsAre(1, 2));
}

TEST(StagedVectorTest, CopiesAChunkThatLiesInSmallPieces) {
  constexpr uint32_t kMany = 20000;
  auto values = std::make_shared<Values>(kMany);
  std::iota(values->begin(), values->end(), 0.0f);
  TensorChunk chunk;
  for (uint32_t i = 0; i < kMany; i += 100) {
    chunk.pieces.push_back(AsPiece(absl::MakeConstSpan(*values).subspan(i, 100)));
  }
  chunk.owner = values;
  const std::weak_ptr<const void> memory = chunk.owner;
  const Values expected = *values;
  values = nullptr;
  StagedVector vector(Shared(ParametersOnly(kMany)));
  ASSERT_THAT(vector.Add(std::move(chunk)), IsOk());
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(Copy(vector, kMany), expected);
}

TEST(StagedVectorTest, TakesOneElementAtATimeOnlyInSmallVectors) {
  StagedVector small(Shared(ParametersOnly(256)));
  for (uint64_t i = 0; i < 256; ++i) ASSERT_THAT(small.Add(ChunkOf(i, {1})), IsOk());
  EXPECT_THAT(small.CheckComplete(), IsOk());
  const Layout layout = LayoutOf({{"w", 99000}, {"b", 1000}});
  StagedVector large(Shared(layout));
  const uint64_t most = 256 + 2 * 2 + 100000 / 256;
  EXPECT_EQ(StagedVector::MostChunks(layout), most);
  for (uint64_t i = 0; i < most; ++i) ASSERT_THAT(large.Add(ChunkOf(i, {1})), IsOk());
  EXPECT_THAT(
      large.Add(ChunkOf(most, {1})),
      IsError(Reason::kBadChunk, HasSubstr("more than 650 chunks of a vector of 100000 elements")));
}

TEST(StagedVectorTest, HasTheNormOfItsParametersAlone) {
  StagedVector vector(Shared(LayoutOf({{"w", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}})));
  ASSERT_THAT(vector.Add(ChunkOf(1, {4, 1000, 1000, -12})), IsOk());
  ASSERT_THAT(vector.Add(ChunkOf(0, {3})), IsOk());
  vector.Seal();
  EXPECT_EQ(vector.ParameterNorm(), 13);
}

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

TEST(StagedVectorTest, NamesTheFirstNotFiniteElementHoweverManyThreadsLook) {
  constexpr size_t kSize = 600'000;
  const auto layout = std::make_shared<const Layout>(ParametersOnly(kSize));
  ThreadPool threads(4);
  for (const size_t first : {size_t{0}, size_t{262'143}, size_t{262'144}, kSize - 1}) {
    Values values(kSize);
    for (size_t i = first; i < kSize; i += 100'000) values[i] = kNan;
    EXPECT_THAT(StagedVector(layout).Add(ChunkOf(0, values), &threads),
                IsError(Reason::kNotFinite, HasSubstr(absl::StrCat("[", first, "]"))));
  }
  EXPECT_THAT(StagedVector(layout).Add(ChunkOf(0, Values(kSize)), &threads), IsOk());
}

}  // namespace
}  // namespace sluice

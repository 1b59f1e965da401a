#include "common/tensor/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

constexpr size_t kBlock = 2048;  // of the search for what is not finite

// Every size in reach of a block's edge, and those below it more coarsely.
std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 0; size <= 5000; ++size) {
    const size_t to_edge = std::min(size % kBlock, kBlock - size % kBlock);
    if (to_edge <= 20 || size % 61 == 0 || size == 5000) sizes.push_back(size);
  }
  return sizes;
}

// Numbers of many magnitudes and both signs, the same ones at each call.
Values Numbers(size_t size, uint32_t seed) {
  Values values(size);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    const float fraction = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
    value = std::ldexp(fraction, static_cast<int>(seed % 41) - 20);
  }
  return values;
}

// The middle of a vector whose two ends must stay as they are.
class Fenced {
 public:
  explicit Fenced(const Values& middle) : all_(middle.size() + 2, kFence) {
    std::copy(middle.begin(), middle.end(), all_.begin() + 1);
  }
  absl::Span<float> span() { return absl::MakeSpan(all_).subspan(1, all_.size() - 2); }
  Values middle() const { return Values(all_.begin() + 1, all_.end() - 1); }
  bool intact() const { return all_.front() == kFence && all_.back() == kFence; }

 private:
  static constexpr float kFence = 4711;
  Values all_;
};

TEST(AddToTest, AddsEveryElementAndNothingElse) {
  for (size_t size : Sizes()) {
    const Values addend = Numbers(size, 2);
    const Values before = Numbers(size, 3);
    Values expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = before[i] + addend[i];
    Fenced sum{before};
    AddTo(AsPiece(addend), sum.span());
    ASSERT_EQ(sum.middle(), expected) << size;
    ASSERT_TRUE(sum.intact()) << size;
  }
}

TEST(DivideToTest, DividesEveryElementAndNothingElse) {
  for (size_t size : Sizes()) {
    const Values from = Numbers(size, 4);
    Values expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = from[i] / 7;
    Fenced to{Values(size, -1)};
    DivideTo(from, 7, to.span());
    ASSERT_EQ(to.middle(), expected) << size;
    ASSERT_TRUE(to.intact()) << size;
  }
}

TEST(DivideToTest, DividesRatherThanMultipliesByTheReciprocal) {
  Values from = {3, 7, 9};
  Values to(3);
  DivideTo(from, 49, absl::MakeSpan(to));
  EXPECT_EQ(to, (Values{3.0f / 49, 7.0f / 49, 9.0f / 49}));
}

TEST(ScaleToTest, ScalesEveryElementAndNothingElse) {
  for (size_t size : Sizes()) {
    const Values from = Numbers(size, 9);
    Values expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = 0.3f * from[i];
    Fenced to{Values(size, -1)};
    ScaleTo(AsPiece(from), 0.3f, to.span());
    ASSERT_EQ(to.middle(), expected) << size;
    ASSERT_TRUE(to.intact()) << size;
  }
}

TEST(ScaleTest, ScalesEveryElementAndNothingElse) {
  for (size_t size : Sizes()) {
    const Values from = Numbers(size, 9);
    Values expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = 0.3f * from[i];
    Fenced values{from};
    Scale(0.3f, values.span());
    ASSERT_EQ(values.middle(), expected) << size;
    ASSERT_TRUE(values.intact()) << size;
  }
}

// Factors that float holds exactly, so that a fused product gives the same bits.
TEST(AddScaledToTest, AddsEveryElementTimesTheFactorAndNothingElse) {
  for (size_t size : Sizes()) {
    const Values addend = Numbers(size, 10);
    const Values before = Numbers(size, 11);
    Values expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = before[i] + 0.25f * addend[i];
    Fenced sum{before};
    AddScaledTo(AsPiece(addend), 0.25f, sum.span());
    ASSERT_EQ(sum.middle(), expected) << size;
    ASSERT_TRUE(sum.intact()) << size;
  }
}

TEST(SumOfSquaresTest, IsThatOfDoublePrecision) {
  for (size_t size : Sizes()) {
    const Values values = Numbers(size, 12);
    long double expected = 0;
    for (const long double value : values) expected += value * value;
    ASSERT_NEAR(SumOfSquares(AsPiece(values)), static_cast<double>(expected), 1e-12 * expected)
        << size;
  }
}

TEST(SumOfSquaresTest, IsExactForSmallIntegers) {
  EXPECT_EQ(SumOfSquares(AsPiece({})), 0);
  EXPECT_EQ(SumOfSquares(AsPiece({-3.0f})), 9);
  Values values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  EXPECT_EQ(SumOfSquares(AsPiece(values)), 100 * 101 * 201 / 6);
}

TEST(SumOfSquaresTest, HoldsSquaresThatFloatDoesNot) {
  EXPECT_EQ(SumOfSquares(AsPiece({0x1p100f, 0x1p100f})), 0x1p201);
  EXPECT_EQ(SumOfSquares(AsPiece({0x1p-100f})), 0x1p-200);
}

TEST(SumOfSquaresTest, GivesTheSameBitsEachTime) {
  const Values values = Numbers(5000, 13);
  const Values elsewhere(values.begin(), values.end());
  EXPECT_EQ(SumOfSquares(AsPiece(values)), SumOfSquares(AsPiece(elsewhere)));
}

TEST(SquareSumTest, TheCutIntoPiecesOfAMultipleOfEightNeverChangesABit) {
  const Values values = Numbers(5003, 15);
  for (const size_t piece : {8u, 104u, 2048u}) {
    SquareSum sum;
    for (size_t begin = 0; begin < values.size(); begin += piece) {
      sum.Add(AsPiece(absl::MakeConstSpan(values).subspan(begin, piece)));
    }
    EXPECT_EQ(sum.Get(), SumOfSquares(AsPiece(values))) << piece;
  }
}

TEST(LargestMagnitudeTest, FindsItAtEveryPlace) {
  for (size_t size : {1u, 7u, 64u, 100u}) {
    for (size_t at = 0; at < size; ++at) {
      Values values(size, 0.5f);
      values[at] = -3;
      EXPECT_EQ(LargestMagnitude(AsPiece(values)), 3) << at << " of " << size;
    }
  }
  EXPECT_EQ(LargestMagnitude(AsPiece({})), 0);
  EXPECT_EQ(LargestMagnitude(AsPiece({-0.0f})), 0);
}

TEST(LargestMagnitudeTest, IsInfinityIfThereIsANan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(LargestMagnitude(AsPiece({1, -infinity})), infinity);
  EXPECT_EQ(LargestMagnitude(AsPiece({nan, 1})), infinity);
  EXPECT_EQ(LargestMagnitude(AsPiece({1, -nan, infinity})), infinity);
}

TEST(CopyWithinTest, CopiesWhatIsWithinTheBoundAndNothingElse) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Values from = {1, -2, 2.5f, nan, infinity, -infinity, 0, -2.5f, 2};
  Fenced to{Values(from.size(), 7)};
  CopyWithin(2, AsPiece(from), to.span());
  EXPECT_EQ(to.middle(), Values({1, -2, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_TRUE(to.intact());
}

TEST(CopyWithinTest, KeepsTheBoundInEveryBlock) {
  Values from(5000, 1);
  Values expected = from;
  for (const size_t i : {0, 2047, 2048, 4095, 4096, 4999}) {
    from[i] = -3;
    expected[i] = 0;
  }
  Fenced to{Values(from.size(), 7)};
  CopyWithin(2, AsPiece(from), to.span());
  EXPECT_EQ(to.middle(), expected);
  EXPECT_TRUE(to.intact());
}

// What came over the wire lies anywhere.
TEST(VectorMathTest, ReadsFloatsAtAnyAddress) {
  const Values numbers = Numbers(100, 14);
  for (size_t shift = 0; shift < sizeof(float); ++shift) {
    std::vector<char> bytes(numbers.size() * sizeof(float) + shift);
    std::memcpy(bytes.data() + shift, numbers.data(), numbers.size() * sizeof(float));
    const FloatPiece piece(reinterpret_cast<const UnalignedFloat*>(bytes.data() + shift),
                           numbers.size());
    Values values = numbers;
    AddTo(piece, absl::MakeSpan(values));
    AddScaledTo(piece, 2, absl::MakeSpan(values));
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], 4 * numbers[i]);
    ScaleTo(piece, 2, absl::MakeSpan(values));
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], 2 * numbers[i]);
    EXPECT_EQ(SumOfSquares(piece), SumOfSquares(AsPiece(numbers)));
    EXPECT_EQ(FindNotFinite(piece), absl::nullopt);
  }
}

TEST(VectorMathTest, TheSplitOfASpanNeverChangesABit) {
  const Values from = Numbers(1000, 5);
  Values whole = Numbers(1000, 6);
  Values split = whole;
  AddTo(AsPiece(from), absl::MakeSpan(whole));
  DivideTo(whole, 3, absl::MakeSpan(whole));
  for (size_t begin = 0; begin < 1000; begin += 37) {
    const auto part = absl::MakeSpan(split).subspan(begin, 37);
    AddTo(AsPiece(absl::MakeConstSpan(from).subspan(begin, 37)), part);
    DivideTo(part, 3, part);
  }
  EXPECT_EQ(whole, split);
}

TEST(FindNotFiniteTest, FindsNothingAmongFiniteNumbers) {
  for (size_t size : Sizes()) {
    ASSERT_EQ(FindNotFinite(AsPiece(Numbers(size, 7))), absl::nullopt) << size;
  }
}

TEST(FindNotFiniteTest, TakesTheExtremesOfFloatForFinite) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(FindNotFinite(AsPiece({Limits::max(), Limits::lowest(), Limits::min(), -Limits::min(),
                                   Limits::denorm_min(), -Limits::denorm_min(), 0.0f, -0.0f})),
            absl::nullopt);
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Infinities, quiet and signalling NaNs, each with both signs.
const std::vector<uint32_t> kNotFiniteBits = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                                              0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};

TEST(FindNotFiniteTest, FindsEveryKindAtEachPositionAroundTheEdgesOfBlocks) {
  for (size_t size : {1, 7, 2047, 2048, 2049, 4095, 4096, 4097, 5000}) {
    Values values = Numbers(size, 8);
    std::set<size_t> positions = {0, size / 2, size - 1};
    for (size_t edge : {kBlock, 2 * kBlock}) {
      for (size_t position = edge - 3; position < edge + 3; ++position) positions.insert(position);
    }
    for (size_t position : positions) {
      if (position >= size) continue;
      const float kept = values[position];
      for (uint32_t bits : kNotFiniteBits) {
        // Bytes, since a float's way through a register may quieten a signalling NaN.
        std::memcpy(&values[position], &bits, sizeof(bits));
        ASSERT_EQ(FindNotFinite(AsPiece(values)), absl::make_optional(position))
            << size << " " << bits;
      }
      values[position] = kept;
    }
  }
}

TEST(FindNotFiniteTest, FindsTheFirstOfSeveral) {
  Values values(5000, 1);
  for (size_t position : {4999, 4096, 2049, 2048, 2047, 1, 0}) {
    values[position] = FromBits(position % 2 == 0 ? 0x7fc00000 : 0xff800000);
    EXPECT_EQ(FindNotFinite(AsPiece(values)), absl::make_optional(position));
  }
}

}  // namespace
}  // namespace sluice

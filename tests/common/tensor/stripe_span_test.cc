#include "common/tensor/stripe_span.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kUnit = 64;

Values Counting(uint64_t first, uint64_t size) {
  Values values(size);
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  return values;
}

std::vector<size_t> PiecesOf(const StripeSpan<const float>& span) {
  std::vector<size_t> sizes;
  span.ForEachPiece(span.begin(), span.end(),
                    [&](absl::Span<const float> piece) { sizes.push_back(piece.size()); });
  return sizes;
}

TEST(StripeSpanTest, AVectorIsOnePiece) {
  const Values vector = Counting(0, 1000);
  const StripeSpan<const float> span = absl::Span<const float>(vector);
  EXPECT_EQ(span.begin(), 0u);
  EXPECT_EQ(span.end(), 1000u);
  EXPECT_EQ(span.OnePiece(0, 1000)->data(), vector.data());
  EXPECT_THAT(PiecesOf(span), ElementsAre(1000));
}

// Compared element by element, for parts that begin and end everywhere in a unit.
TEST(StripeSpanTest, HasTheElementsOfAPartInOrder) {
  for (const uint64_t size : {5u, 64u, 65u, 700u}) {
    for (const uint32_t count : {1u, 2u, 3u, 5u}) {
      const Stripes stripes(size, count);
      for (uint64_t first = 0; first <= size; first += 13) {
        for (uint64_t end = first; end <= size; end += 17) {
          const Values part = Counting(first, end - first);
          uint64_t sum = 0;
          for (uint32_t stripe = 0; stripe < count; ++stripe) {
            const StripeSpan<const float> span(stripes, stripe, first, part);
            Values gathered(span.size());
            Gather(span, span.begin(), span.end(), gathered.data());
            for (uint64_t i = 0; i < gathered.size(); ++i) {
              ASSERT_EQ(gathered[i], stripes.InVector(stripe, span.begin() + i));
            }
            sum += gathered.size();
          }
          ASSERT_EQ(sum, end - first);
        }
      }
    }
  }
}

TEST(StripeSpanTest, OnePieceLiesInOneUnit) {
  const Values vector = Counting(0, 10 * kUnit);
  const StripeSpan<const float> span(Stripes(vector.size(), 2), 1, 0, vector);
  EXPECT_EQ(span.OnePiece(0, kUnit)->data(), &vector[kUnit]);
  EXPECT_EQ(span.OnePiece(kUnit + 1, kUnit + 2)->data(), &vector[3 * kUnit + 1]);
  EXPECT_FALSE(span.OnePiece(kUnit - 1, kUnit + 1).has_value());
  EXPECT_THAT(PiecesOf(span), ElementsAre(kUnit, kUnit, kUnit, kUnit, kUnit));
}

TEST(StripeSpanTest, AnEmptyStripeHasNoPiece) {
  const Values vector = Counting(0, 5);
  const StripeSpan<const float> span(Stripes(5, 3), 2, 0, vector);
  EXPECT_EQ(span.size(), 0u);
  EXPECT_EQ(span.OnePiece(0, 0)->size(), 0u);
  EXPECT_THAT(PiecesOf(span), ElementsAre());
}

}  // namespace
}  // namespace sluice

#include "common/tensor/stripes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(StripesTest, AUnitIsSmallerInASmallVector) {
  EXPECT_EQ(Stripes(1, 1).unit(), 64u);
  EXPECT_EQ(Stripes(2 * 64 * 512 - 1, 1).unit(), 64u);
  EXPECT_EQ(Stripes(2 * 64 * 512, 1).unit(), 128u);
  EXPECT_EQ(Stripes(uint64_t{1} << 38, 1).unit(), uint64_t{1} << 18);
}

TEST(StripesTest, TheNumberOfStripesDoesNotChangeTheUnit) {
  EXPECT_EQ(Stripes(100'000, 7).unit(), Stripes(100'000, 1).unit());
}

// LeNet, ResNet-50, and a model of one large tensor.
TEST(StripesTest, NoStripeOfFourIsOnePercentLargerThanAnother) {
  for (const uint64_t size : {431'080ul, 25'557'032ul, 4'000'000'000ul}) {
    const Stripes stripes(size, 4);
    std::vector<uint64_t> sizes;
    for (uint32_t i = 0; i < 4; ++i) sizes.push_back(stripes.SizeOf(i));
    const auto ends = std::minmax_element(sizes.begin(), sizes.end());
    EXPECT_LE(static_cast<double>(*ends.second), 1.01 * static_cast<double>(*ends.first)) << size;
  }
}

// The layers of a model do not matter: one tensor has nine tenths of its elements.
TEST(StripesTest, OneLargeTensorIsSharedByAllStripes) {
  const Layout layout =
      LayoutOf({{"a", 500'000}, {"b", 9'000'000}, {"c", 300'000}, {"d", 200'000}});
  const Stripes stripes(layout.size(), 4);
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; i < 4; ++i) {
    uint64_t size = 0;
    for (const LayoutRange& range : layout.OfStripe(stripes, i).ranges()) size += range.length;
    sizes.push_back(size);
  }
  EXPECT_EQ(sizes[0] + sizes[1] + sizes[2] + sizes[3], 10'000'000u);
  const auto ends = std::minmax_element(sizes.begin(), sizes.end());
  EXPECT_LE(static_cast<double>(*ends.second), 1.01 * static_cast<double>(*ends.first));
}

// Counted element by element.
TEST(StripesTest, EachElementHasOnePlaceInOneStripe) {
  for (const uint64_t size : {0, 1, 64, 65, 1000, 70'000}) {
    for (const uint32_t count : {1, 2, 3, 5, 16}) {
      const Stripes stripes(size, count);
      std::vector<uint64_t> before(count);
      for (uint64_t i = 0; i < size; ++i) {
        const uint32_t stripe = stripes.StripeOf(i);
        ASSERT_EQ(stripe, i / stripes.unit() % count);
        for (uint32_t s = 0; s < count; ++s) ASSERT_EQ(stripes.Before(s, i), before[s]);
        ASSERT_EQ(stripes.InVector(stripe, before[stripe]), i);
        ++before[stripe];
      }
      for (uint32_t s = 0; s < count; ++s) ASSERT_EQ(stripes.SizeOf(s), before[s]);
    }
  }
}

TEST(StripesTest, ForEachUnitCutsAtTheEndsOfUnits) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  ForEachUnit(10, 7, 31, [&](uint64_t begin, uint64_t end) { parts.emplace_back(begin, end); });
  EXPECT_THAT(parts, ElementsAre(Pair(7, 10), Pair(10, 20), Pair(20, 30), Pair(30, 31)));
}

// Units of 64: stripe 0 of 2 has [0, 64), [128, 192) and [256, 300), stripe 1 the rest.
TEST(StripesTest, TheLayoutOfAStripeHasThePartsOfEachTensorThere) {
  const Layout layout =
      LayoutOf({{"a", 70}, {"mean", 50, RangeKind::kStatistic}, {"b", 4}, {"c", 176}});
  const Stripes stripes(layout.size(), 2);
  const Layout first = layout.OfStripe(stripes, 0);
  const Layout second = layout.OfStripe(stripes, 1);
  const auto a = LayoutRange{"a", {64}, RangeKind::kParameter, DataType::kFloat32, 0, 64};
  const auto c = LayoutRange{"c", {108}, RangeKind::kParameter, DataType::kFloat32, 64, 108};
  EXPECT_THAT(first.ranges(), ElementsAre(a, c));
  EXPECT_THAT(
      second.ranges(),
      ElementsAre(LayoutRange{"a", {6}, RangeKind::kParameter, DataType::kFloat32, 0, 6},
                  LayoutRange{"mean", {50}, RangeKind::kStatistic, DataType::kFloat32, 6, 50},
                  LayoutRange{"b", {4}, RangeKind::kParameter, DataType::kFloat32, 56, 4},
                  LayoutRange{"c", {68}, RangeKind::kParameter, DataType::kFloat32, 60, 68}));
}

TEST(StripesTest, TheLayoutOfAStripeNamesElementsOfTheWholeVector) {
  const Layout layout = LayoutOf({{"a", 70}, {"b", 230}});
  const Stripes stripes(layout.size(), 2);
  for (uint32_t stripe = 0; stripe < 2; ++stripe) {
    const Layout part = layout.OfStripe(stripes, stripe);
    ASSERT_NE(part.stripe(), nullptr);
    EXPECT_EQ(part.stripe()->index, stripe);
    for (uint64_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part.ElementName(i), layout.ElementName(stripes.InVector(stripe, i)));
    }
    for (const LayoutRange& range : part.ranges()) {
      EXPECT_EQ(part.WholeOf(range), *layout.Find(range.name));
    }
  }
  EXPECT_EQ(layout.WholeOf(layout.ranges()[0]), layout.ranges()[0]);
  EXPECT_EQ(layout.stripe(), nullptr);
}

TEST(StripesTest, TheOnlyStripeHasTheLayoutOfTheVector) {
  const Layout layout = LayoutOf({{"a", 70}, {"b", 4}});
  EXPECT_EQ(layout.OfStripe(Stripes(layout.size(), 1), 0).ranges(), layout.ranges());
}

TEST(StripesTest, AStripeOfASmallModelMayBeEmpty) {
  const Layout layout = ParametersOnly(100);
  EXPECT_EQ(layout.OfStripe(Stripes(100, 3), 2).size(), 0u);
}

}  // namespace
}  // namespace sluice

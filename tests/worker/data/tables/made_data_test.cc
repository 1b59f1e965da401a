// The data that are made: what follows from a sample's number alone.

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/data/tables/cell_data.h"
#include "worker/data/tables/click_data.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::SizeIs;

const CellData& Cells() {
  static const auto* const data = new CellData();
  return *data;
}

const ClickData& Clicks() {
  static const auto* const data = new ClickData();
  return *data;
}

TEST(CellDataTest, ASampleFollowsFromItsNumberAndEachEpochHasNewOnes) {
  const Batch two = Cells().MakeBatch({7, 5}, 0, 0);
  const Batch one = Cells().MakeBatch({5}, 0, 9);
  EXPECT_THAT(two.ids, SizeIs(4));
  EXPECT_THAT(one.ids, ElementsAre(two.ids[1], two.ids[3]));
  EXPECT_THAT(one.targets, ElementsAre(two.targets[1]));
  EXPECT_NE(Cells().MakeBatch({5}, 1, 0).targets, one.targets);
  EXPECT_EQ(CellData().MakeBatch({7, 5}, 0, 0).targets, two.targets);
}

TEST(CellDataTest, TheSamplesOfTheTestAreInTheMatrix) {
  const Batch& test = Cells().test();
  EXPECT_EQ(test.size(), CellData::kTestSamples);
  EXPECT_THAT(test.ids, SizeIs(2 * CellData::kTestSamples));
  EXPECT_THAT(test.ids, Each(AllOf(Ge(0), Lt(CellData::kSide))));
}

TEST(ClickDataTest, ASampleFollowsFromItsNumberAndEachEpochHasNewOnes) {
  const Batch two = Clicks().MakeBatch({7, 5}, 0, 0);
  const Batch one = Clicks().MakeBatch({5}, 0, 9);
  ASSERT_THAT(two.ids, SizeIs(2 * ClickData::kBag * ClickData::kFields));
  ASSERT_THAT(one.ids, SizeIs(ClickData::kBag * ClickData::kFields));
  // The second bag of the first field, and of the last.
  EXPECT_TRUE(std::equal(one.ids.begin(), one.ids.begin() + ClickData::kBag,
                         two.ids.begin() + ClickData::kBag));
  EXPECT_TRUE(std::equal(one.ids.rbegin(), one.ids.rbegin() + ClickData::kBag, two.ids.rbegin()));
  EXPECT_TRUE(
      std::equal(one.inputs.begin(), one.inputs.end(), two.inputs.begin() + ClickData::kNumbers));
  EXPECT_EQ(Clicks().OddsOf(one).at(0), Clicks().OddsOf(two).at(1));
  EXPECT_NE(Clicks().MakeBatch({5}, 1, 0).inputs, one.inputs);
}

// Of the clicks that were drawn with odds of about one to one, about half are there, and so on.
TEST(ClickDataTest, ClicksAreAsFrequentAsTheirOdds) {
  const Batch& test = Clicks().test();
  const std::vector<float> odds = Clicks().OddsOf(test);
  double expected = 0;
  double clicks = 0;
  for (size_t i = 0; i < odds.size(); ++i) {
    expected += 1 / (1 + std::exp(-odds[i]));
    clicks += test.targets[i];
  }
  EXPECT_EQ(test.size(), ClickData::kTestSamples);
  EXPECT_NEAR(clicks / expected, 1, 0.02);
}

}  // namespace
}  // namespace sluice

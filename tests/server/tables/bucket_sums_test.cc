#include "server/tables/bucket_sums.h"

#include <map>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BucketSumsTest : public ::testing::Test {
 protected:
  // Adds a gradient of 1 to each of the ids, which ascend.
  void Add(const std::vector<RowId>& ids, float share = 1) {
    for (const RowId id : ids) {
      const RowSum row = sums_.Row(id, share);
      if (row.is_first) row.elements[0] = 0;
      row.elements[0] += 1;
    }
    sums_.EndGradient();
  }

  std::vector<RowId> Ids() const {
    std::vector<RowId> ids;
    for (const uint32_t index : sums_.Order()) ids.push_back(sums_.id(index));
    return ids;
  }

  std::vector<float> Sums() const {
    std::vector<float> sums;
    for (const uint32_t index : sums_.Order()) sums.push_back(sums_.sum(index)[0]);
    return sums;
  }

  BucketSums sums_{1};
};

TEST_F(BucketSumsTest, HasTheRowsOfAllGradientsInAscendingOrder) {
  Add({3, 7, 9});
  Add({1, 7, 8, 20});
  Add({});
  Add({0, 3, 20});
  EXPECT_THAT(Ids(), ElementsAre(0, 1, 3, 7, 8, 9, 20));
  EXPECT_THAT(Sums(), ElementsAre(1, 1, 2, 2, 1, 1, 2));
  EXPECT_TRUE(sums_.Has(8));
  EXPECT_FALSE(sums_.Has(2));
  EXPECT_FALSE(sums_.Has(21));
}

TEST_F(BucketSumsTest, HasTheRowsOfOneGradient) {
  Add({3, 7, 9});
  EXPECT_THAT(Ids(), ElementsAre(3, 7, 9));
  EXPECT_TRUE(sums_.Has(7));
  EXPECT_FALSE(sums_.Has(8));
}

TEST_F(BucketSumsTest, AddsTheSharesOfARow) {
  Add({5}, 0.5);
  Add({4, 5}, 0.25);
  EXPECT_THAT(Ids(), ElementsAre(4, 5));
  EXPECT_EQ(sums_.share(sums_.Order()[0]), 0.25);
  EXPECT_EQ(sums_.share(sums_.Order()[1]), 0.75);
}

TEST_F(BucketSumsTest, IsEmptyAfterItIsCleared) {
  Add({5, 6});
  sums_.Clear();
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_FALSE(sums_.Has(5));
  Add({6});
  EXPECT_THAT(Ids(), ElementsAre(6));
  EXPECT_THAT(Sums(), ElementsAre(1));
}

TEST_F(BucketSumsTest, CountsWhatAMapCounts) {
  std::mt19937 random(1);
  std::map<RowId, float> expected;
  for (int gradient = 0; gradient < 50; ++gradient) {
    std::set<RowId> ids;
    while (ids.size() < 40) ids.insert(random() % 1000);
    Add({ids.begin(), ids.end()});
    for (const RowId id : ids) ++expected[id];
  }
  std::vector<RowId> ids;
  std::vector<float> sums;
  for (const auto& [id, sum] : expected) {
    ids.push_back(id);
    sums.push_back(sum);
  }
  EXPECT_EQ(Ids(), ids);
  EXPECT_EQ(Sums(), sums);
}

}  // namespace
}  // namespace sluice

#include "server/tables/frequent_ids.h"

#include <cmath>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;

std::vector<RowId> IdsOf(const std::vector<FrequentIds::Counted>& counted) {
  std::vector<RowId> ids;
  for (const FrequentIds::Counted& one : counted) ids.push_back(one.id);
  return ids;
}

TEST(FrequentIdsTest, CountsFewIdsExactly) {
  FrequentIds frequent(3);
  for (const RowId id : {7, 9, 7, 8, 7, 9}) frequent.Add(id);
  const auto top = frequent.Top(2);
  ASSERT_EQ(IdsOf(top), (std::vector<RowId>{7, 9}));
  EXPECT_EQ(top[0].count, 3u);
  EXPECT_EQ(top[1].count, 2u);
  EXPECT_EQ(top[1].too_high, 0u);
}

TEST(FrequentIdsTest, ANewIdTakesThePlaceOfTheRarest) {
  FrequentIds frequent(2);
  for (const RowId id : {1, 1, 1, 2, 3, 3, 3}) frequent.Add(id);
  const auto top = frequent.Top(9);
  ASSERT_EQ(IdsOf(top), (std::vector<RowId>{3, 1}));
  EXPECT_EQ(top[0].count, 4u);
  EXPECT_EQ(top[0].too_high, 1u);
}

TEST(FrequentIdsTest, IdsThatAreAllEquallyRareAreNotFrequent) {
  FrequentIds frequent(10);
  for (RowId id = 0; id < 1000; ++id) frequent.Add(id);
  EXPECT_THAT(frequent.Top(10), IsEmpty());
}

// The guarantees of the paper, on ids that are as frequent as 1, 1/2, 1/3, …
TEST(FrequentIdsTest, EveryIdThatIsMoreFrequentThanItsShareOfTheCountsIsFound) {
  constexpr size_t kCounts = 200;
  constexpr int kAdded = 100'000;
  FrequentIds frequent(kCounts);
  std::map<RowId, uint64_t> exact;
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<double> uniform(0, std::log(1e6));
  for (int i = 0; i < kAdded; ++i) {
    const auto id = static_cast<RowId>(std::exp(uniform(engine)));
    frequent.Add(id);
    ++exact[id];
  }
  const auto top = frequent.Top(kCounts);
  ASSERT_GE(top.size(), 5u);
  for (const FrequentIds::Counted& one : top) {
    EXPECT_GE(one.count, exact[one.id]);
    EXPECT_LE(one.count - one.too_high, exact[one.id]);
  }
  for (const auto& [id, count] : exact) {
    if (count <= 2 * kAdded / kCounts) continue;
    EXPECT_THAT(IdsOf(top), testing::Contains(id));
  }
}

}  // namespace
}  // namespace sluice

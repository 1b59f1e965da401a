#include "server/tables/stages.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What three stages, a, b and c, do with [begin, end).
std::vector<std::string> Calls(size_t begin, size_t end) {
  std::vector<std::string> calls;
  const auto stage = [&calls](const char* name) {
    return [&calls, name](size_t i) { calls.push_back(absl::StrCat(name, i)); };
  };
  InStages(begin, end, stage("a"), stage("b"), stage("c"));
  return calls;
}

TEST(StagesTest, EachIsOneItemAheadOfTheNext) {
  EXPECT_THAT(Calls(0, 4),
              ElementsAre("a0", "a1", "b0", "a2", "b1", "c0", "a3", "b2", "c1", "b3", "c2", "c3"));
  EXPECT_THAT(Calls(7, 9), ElementsAre("a7", "a8", "b7", "b8", "c7", "c8"));
}

TEST(StagesTest, OneItemGoesThroughAll) {
  EXPECT_THAT(Calls(0, 1), ElementsAre("a0", "b0", "c0"));
  EXPECT_THAT(Calls(3, 4), ElementsAre("a3", "b3", "c3"));
}

TEST(StagesTest, NoItemIsNoCall) {
  EXPECT_THAT(Calls(0, 0), IsEmpty());
  EXPECT_THAT(Calls(5, 5), IsEmpty());
}

TEST(StagesTest, OneStageIsALoop) {
  std::vector<size_t> items;
  InStages(1, 4, [&items](size_t i) { items.push_back(i); });
  EXPECT_THAT(items, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace sluice

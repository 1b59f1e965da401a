#include "server/optimizers/group_runs.h"

#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {

bool operator==(const GroupRun& a, const GroupRun& b) {
  return std::tie(a.kind, a.group, a.begin, a.end) == std::tie(b.kind, b.group, b.begin, b.end);
}

namespace {

using ::testing::ElementsAre;

constexpr auto kParameter = RangeKind::kParameter;
constexpr auto kStatistic = RangeKind::kStatistic;

Layout Five() {
  return LayoutOf({{"a", 2}, {"b", 3}, {"mean", 1, kStatistic}, {"c", 4}, {"d", 5}});
}

TEST(GroupRunsTest, AreTheRangesIfThereAreNoGroups) {
  const std::vector<GroupRun> runs = RangeRuns(Five(), {SgdOptions()});
  EXPECT_THAT(runs, ElementsAre(GroupRun{kParameter, 0, 0, 2}, GroupRun{kParameter, 0, 2, 5},
                                GroupRun{kStatistic, 0, 5, 6}, GroupRun{kParameter, 0, 6, 10},
                                GroupRun{kParameter, 0, 10, 15}));
  EXPECT_THAT(Joined(runs),
              ElementsAre(GroupRun{kParameter, 0, 0, 5}, GroupRun{kStatistic, 0, 5, 6},
                          GroupRun{kParameter, 0, 6, 15}));
}

TEST(GroupRunsTest, TellGroupsApart) {
  const OptimizerConfig config = {SgdOptions(),
                                  {{{"d", "b"}, SgdOptions()}, {{"c"}, SgdOptions()}}};
  const std::vector<GroupRun> runs = RangeRuns(Five(), config);
  EXPECT_THAT(runs, ElementsAre(GroupRun{kParameter, 0, 0, 2}, GroupRun{kParameter, 1, 2, 5},
                                GroupRun{kStatistic, 0, 5, 6}, GroupRun{kParameter, 2, 6, 10},
                                GroupRun{kParameter, 1, 10, 15}));
  EXPECT_EQ(Joined(runs), runs);
}

TEST(GroupRunsTest, JoinsNeighboursOfOneGroup) {
  const OptimizerConfig config = {SgdOptions(), {{{"a", "b"}, SgdOptions()}}};
  EXPECT_THAT(Joined(RangeRuns(Five(), config)),
              ElementsAre(GroupRun{kParameter, 1, 0, 5}, GroupRun{kStatistic, 0, 5, 6},
                          GroupRun{kParameter, 0, 6, 15}));
}

}  // namespace
}  // namespace sluice

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/bench/crowds/crowd.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

CrowdShares Shares(uint32_t workers, uint32_t killed, uint32_t processes) {
  CrowdPlan plan;
  plan.workers = workers;
  plan.killed = killed;
  plan.processes = processes;
  return SharesOf(plan);
}

TEST(CrowdSharesTest, AreNearlyEqual) {
  EXPECT_THAT(Shares(10, 0, 4).workers, ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(Shares(3, 0, 4).workers, ElementsAre(1, 1, 1));
  EXPECT_EQ(Shares(10, 0, 4).processes_to_kill, 0);
}

TEST(CrowdSharesTest, KeepThoseThatAreKilledApart) {
  EXPECT_THAT(Shares(1000, 300, 4).workers, ElementsAre(300, 234, 233, 233));
  EXPECT_EQ(Shares(1000, 300, 4).processes_to_kill, 1);
  EXPECT_THAT(Shares(1000, 500, 4).workers, ElementsAre(250, 250, 250, 250));
  EXPECT_EQ(Shares(1000, 500, 4).processes_to_kill, 2);
}

TEST(CrowdSharesTest, TakeAProcessMoreWhereOneIsNotEnough) {
  EXPECT_THAT(Shares(12, 4, 1).workers, ElementsAre(4, 8));
  EXPECT_THAT(Shares(1000, 999, 2).workers, ElementsAre(500, 499, 1));
}

}  // namespace
}  // namespace sluice::bench

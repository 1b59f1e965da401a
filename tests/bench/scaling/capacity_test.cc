#include "tools/bench/scaling/capacity.h"

#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

constexpr GradientCost kCost = {0.05, 100e6};

// By its cores 4 / 0.05 = 80 gradients in a second, by its network 1e9 / 100e6 = 10.
Site SlowNetwork() { return {1, 4, 1e9, 0.9}; }

// By its cores 80, by its network 1000.
Site FastNetwork() { return {1, 4, 100e9, 0.9}; }

TEST(CapacityTest, IsBoundByTheScarcer) {
  const Capacity slow = CapacityOf(kCost, SlowNetwork());
  EXPECT_DOUBLE_EQ(slow.by_cores, 80);
  EXPECT_DOUBLE_EQ(slow.by_network, 10);
  EXPECT_DOUBLE_EQ(slow.gradients_per_second, 10);
  EXPECT_DOUBLE_EQ(slow.saturating_workers, 9);
  EXPECT_DOUBLE_EQ(CapacityOf(kCost, FastNetwork()).saturating_workers, 72);
}

TEST(CapacityTest, GrowsWithTheServers) {
  Site site = SlowNetwork();
  site.servers = 4;
  EXPECT_DOUBLE_EQ(CapacityOf(kCost, site).gradients_per_second, 40);
}

TEST(SyncRoundTest, CarriesAllThatIsPushedAndThenAllThatIsPulled) {
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, SlowNetwork(), 1), 0.2);
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, SlowNetwork(), 3), 0.6);
}

TEST(SyncRoundTest, TakesTheCoresTimeWhereTheNetworkIsFaster) {
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, FastNetwork(), 8), 0.1);
}

TEST(SyncRoundTest, IsNeverFasterThanAWorkersOwnNetwork) {
  Site site = SlowNetwork();
  site.servers = 8;
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, site, 4), 0.2);
}

TEST(SyncRoundTest, FallsWithTheServersAsLongAsTheWorkersNetworkIsFaster) {
  Site site = SlowNetwork();
  site.worker_bytes_per_second = 5e9;
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, site, 2), 0.4);
  site.servers = 4;
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, site, 2), 0.1);
  site.servers = 16;
  EXPECT_DOUBLE_EQ(SyncRoundSeconds(kCost, site, 2), 0.04);
}

TEST(WorkersWithinTest, AreThoseWhoseRoundsTakeThatShare) {
  // Of 0.9 s of compute, half a step is 0.9 s of rounds, a tenth is 0.1 s.
  EXPECT_EQ(WorkersWithin(kCost, SlowNetwork(), 0.5), 4u);
  EXPECT_EQ(WorkersWithin(kCost, SlowNetwork(), 0.1), 0u);
  EXPECT_EQ(WorkersWithin(kCost, FastNetwork(), 0.5), 72u);
  EXPECT_EQ(WorkersWithin(kCost, FastNetwork(), 0.1), 8u);
}

TEST(WorkersWithinTest, GrowsWithTheServersButNotBeyondOneWorkersNetwork) {
  Site site = SlowNetwork();
  site.servers = 8;
  EXPECT_EQ(WorkersWithin(kCost, site, 0.5), 36u);
  EXPECT_EQ(WorkersWithin(kCost, site, 0.1), 0u);
}

}  // namespace
}  // namespace sluice::bench

#include "server/policy/mode_options.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint32_t kMost = 4294967295u;

TEST(DefaultQuorumTest, LeavesFivePercentOfTheWorkersAndAtLeastOneForBackups) {
  const auto quorum = [](uint32_t workers) {
    return DefaultQuorum(ConsistencyMode::kBackup, workers);
  };
  EXPECT_EQ(quorum(2), 1u);
  EXPECT_EQ(quorum(4), 3u);
  EXPECT_EQ(quorum(16), 15u);
  EXPECT_EQ(quorum(39), 38u);
  EXPECT_EQ(quorum(40), 38u);
  EXPECT_EQ(quorum(100), 95u);
}

TEST(DefaultQuorumTest, IsOneIfThereIsNoWorkerToSpare) {
  EXPECT_EQ(DefaultQuorum(ConsistencyMode::kBackup, 0), 1u);
  EXPECT_EQ(DefaultQuorum(ConsistencyMode::kBackup, 1), 1u);
}

TEST(DefaultQuorumTest, IsOneInTheOtherModes) {
  for (const ConsistencyMode mode : {ConsistencyMode::kSync, ConsistencyMode::kBounded,
                                     ConsistencyMode::kSsp, ConsistencyMode::kAsync}) {
    EXPECT_EQ(DefaultQuorum(mode, 16), 1u) << ConsistencyModeName(mode);
  }
}

TEST(DefaultMaxStalenessTest, IsTwiceTheStepsThatAllWorkersMakeWithOneGradientEach) {
  EXPECT_EQ(DefaultMaxStaleness(1, 1), 2u);
  EXPECT_EQ(DefaultMaxStaleness(3, 1), 6u);
  EXPECT_EQ(DefaultMaxStaleness(16, 1), 32u);
  EXPECT_EQ(DefaultMaxStaleness(16, 4), 8u);
  EXPECT_EQ(DefaultMaxStaleness(16, 5), 8u);  // a fraction of a step is a step
  EXPECT_EQ(DefaultMaxStaleness(4, 16), 2u);
}

TEST(DefaultMaxStalenessTest, HoldsForNoWorkersAndForTheMost) {
  EXPECT_EQ(DefaultMaxStaleness(0, 1), 2u);
  EXPECT_EQ(DefaultMaxStaleness(kMost, 1), kMost);
  EXPECT_EQ(DefaultMaxStaleness(kMost, kMost), 2u);
}

TEST(DescribeModeTest, NamesTheOptionsThatTheModeHas) {
  Consistency consistency;
  EXPECT_EQ(DescribeMode(consistency), "sync");
  consistency.mode = ConsistencyMode::kBackup;
  consistency.quorum = 3;
  EXPECT_EQ(DescribeMode(consistency), "backup, quorum 3");
  consistency.mode = ConsistencyMode::kAsync;
  EXPECT_EQ(DescribeMode(consistency), "async, quorum 3");
  consistency.mode = ConsistencyMode::kBounded;
  consistency.max_staleness = 0;
  EXPECT_EQ(DescribeMode(consistency), "bounded, quorum 3, max_staleness 0");
  consistency = Consistency();
  consistency.mode = ConsistencyMode::kSsp;
  EXPECT_EQ(DescribeMode(consistency), "ssp, slack 0");
}

}  // namespace
}  // namespace sluice

#include "server/state/push_counters.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(PushCountersTest, BalanceWhileEachPushIsInOneColumn) {
  uint64_t PushCounters::*const columns[] = {&PushCounters::accepted,   &PushCounters::stale,
                                             &PushCounters::skipped,    &PushCounters::duplicate,
                                             &PushCounters::rejected,   &PushCounters::aborted,
                                             &PushCounters::in_progress};
  PushCounters counters;
  EXPECT_TRUE(counters.Balanced());
  for (uint64_t PushCounters::*const column : columns) {
    ++counters.received;
    EXPECT_FALSE(counters.Balanced());
    ++(counters.*column);
    EXPECT_TRUE(counters.Balanced());
  }
}

TEST(StalenessHistogramTest, StartsEmpty) {
  const StalenessHistogram histogram;
  for (const uint64_t count : histogram.counts()) EXPECT_EQ(count, 0u);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.max(), 0u);
}

TEST(StalenessHistogramTest, CountsByStalenessAndKnowsMeanAndMaximum) {
  StalenessHistogram histogram;
  for (const uint64_t staleness : {0, 0, 3, 1, 0, 2}) histogram.Enter(staleness);
  EXPECT_EQ(histogram.counts()[0], 3u);
  EXPECT_EQ(histogram.counts()[1], 1u);
  EXPECT_EQ(histogram.counts()[2], 1u);
  EXPECT_EQ(histogram.counts()[3], 1u);
  EXPECT_EQ(histogram.counts()[4], 0u);
  EXPECT_EQ(histogram.mean(), 1);
  EXPECT_EQ(histogram.max(), 3u);
}

TEST(StalenessHistogramTest, CountsWhatIsBeyondItsEndTogetherButMeasuresItWhole) {
  StalenessHistogram histogram;
  for (const uint64_t staleness : {31, 32, 33, 1000}) histogram.Enter(staleness);
  ASSERT_EQ(histogram.counts().size(), 33u);
  EXPECT_EQ(histogram.counts()[31], 1u);
  EXPECT_EQ(histogram.counts()[32], 3u);
  EXPECT_EQ(histogram.mean(), 274);
  EXPECT_EQ(histogram.max(), 1000u);
}

}  // namespace
}  // namespace sluice

#include "server/state/push_books.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(PushBooksTest, BalanceWhileEachPushIsInOneColumn) {
  uint64_t PushBooks::*const columns[] = {
      &PushBooks::accepted, &PushBooks::stale,   &PushBooks::skipped,    &PushBooks::duplicate,
      &PushBooks::rejected, &PushBooks::aborted, &PushBooks::in_progress};
  PushBooks books;
  EXPECT_TRUE(books.Balanced());
  for (uint64_t PushBooks::*const column : columns) {
    ++books.received;
    EXPECT_FALSE(books.Balanced());
    ++(books.*column);
    EXPECT_TRUE(books.Balanced());
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

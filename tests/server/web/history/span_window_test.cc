// The summary of a second of steps.

#include "server/web/history/span_window.h"

#include <cmath>

#include "gtest/gtest.h"

namespace sluice {
namespace {

double MeanOf(const SpanSummary& summary, ServerSpan span) {
  return summary.mean[static_cast<size_t>(span)];
}

TEST(SpanWindowTest, KnowsNothingOfWhatWasNotSeen) {
  SpanWindow window;
  window.Observe(ServerSpan::kApply, absl::Seconds(1));
  const SpanSummary summary = window.Take();
  EXPECT_EQ(MeanOf(summary, ServerSpan::kApply), 1);
  EXPECT_TRUE(std::isnan(MeanOf(summary, ServerSpan::kWait)));
  EXPECT_TRUE(std::isnan(summary.step_median));
  EXPECT_TRUE(std::isnan(summary.step_p99));
  EXPECT_TRUE(std::isnan(summary.sync_median));
  EXPECT_TRUE(std::isnan(summary.sync_p99));
}

TEST(SpanWindowTest, TellsTheMeanOfEachPartSinceTheLastLook) {
  SpanWindow window;
  window.Observe(ServerSpan::kWait, absl::Milliseconds(500));
  window.Observe(ServerSpan::kWait, absl::Milliseconds(250));
  window.Observe(ServerSpan::kEncode, absl::Milliseconds(125));
  const SpanSummary first = window.Take();
  EXPECT_EQ(MeanOf(first, ServerSpan::kWait), 0.375);
  EXPECT_EQ(MeanOf(first, ServerSpan::kEncode), 0.125);
  window.Observe(ServerSpan::kWait, absl::Seconds(2));
  EXPECT_EQ(MeanOf(window.Take(), ServerSpan::kWait), 2);
}

// Of 99 steps of 1 ms and one of 2 s the 99th is short; of 98 and two it is long.
TEST(SpanWindowTest, TellsTheMedianAndTheNinetyNinthPercentileOfSingleSteps) {
  for (const int slow : {1, 2}) {
    SpanWindow window;
    for (int i = 0; i < 100; ++i) {
      window.Observe(ServerSpan::kStep, i < slow ? absl::Seconds(2) : absl::Milliseconds(1));
    }
    const SpanSummary summary = window.Take();
    const double truth = slow == 1 ? 0.001 : 2;
    EXPECT_GE(summary.step_median, 0.001);
    EXPECT_LE(summary.step_median, 0.001 * 1.091);
    EXPECT_GE(summary.step_p99, truth);
    EXPECT_LE(summary.step_p99, truth * 1.091);
  }
}

TEST(SpanWindowTest, TellsSyncsOfTheJournalApartFromSteps) {
  SpanWindow window;
  for (int i = 0; i < 3; ++i) window.Observe(ServerSpan::kJournalSync, absl::Milliseconds(8));
  window.Observe(ServerSpan::kJournalSync, absl::Seconds(2));
  window.Observe(ServerSpan::kStep, absl::Seconds(5));
  const SpanSummary summary = window.Take();
  EXPECT_GE(summary.sync_median, 0.008);
  EXPECT_LE(summary.sync_median, 0.008 * 1.091);
  EXPECT_EQ(summary.sync_p99, 2);
  EXPECT_EQ(summary.step_p99, 5);
  EXPECT_TRUE(std::isnan(window.Take().sync_p99));
}

TEST(SpanWindowTest, IsExactForOneStepHoweverShortOrLong) {
  SpanWindow window;
  for (const absl::Duration length :
       {absl::ZeroDuration(), absl::Nanoseconds(3), absl::Milliseconds(7), absl::Hours(3)}) {
    window.Observe(ServerSpan::kStep, length);
    const SpanSummary summary = window.Take();
    EXPECT_EQ(summary.step_median, absl::ToDoubleSeconds(length));
    EXPECT_EQ(summary.step_p99, absl::ToDoubleSeconds(length));
  }
}

}  // namespace
}  // namespace sluice

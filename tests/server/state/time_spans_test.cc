#include "server/state/time_spans.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

absl::Time At(int second) { return absl::FromUnixSeconds(1000 + second); }

TEST(TimeSpansTest, WithoutASpanHasNoLength) {
  EXPECT_EQ(TimeSpans().After(At(0)), absl::ZeroDuration());
}

TEST(TimeSpansTest, CountsWhatIsAfterATime) {
  TimeSpans spans;
  spans.Add(At(1), At(3));
  spans.Add(At(5), At(9));
  EXPECT_EQ(spans.After(absl::InfinitePast()), absl::Seconds(6));
  EXPECT_EQ(spans.After(At(2)), absl::Seconds(5));
  EXPECT_EQ(spans.After(At(4)), absl::Seconds(4));
  EXPECT_EQ(spans.After(At(8)), absl::Seconds(1));
  EXPECT_EQ(spans.After(At(9)), absl::ZeroDuration());
}

TEST(TimeSpansTest, CountsTimeThatWasAddedTwiceOnce) {
  TimeSpans spans;
  spans.Add(At(1), At(3));
  spans.Add(At(1), At(3));
  spans.Add(At(2), At(4));
  EXPECT_EQ(spans.After(At(0)), absl::Seconds(3));
}

TEST(TimeSpansTest, JoinsSpansThatTouch) {
  TimeSpans spans;
  for (int i = 0; i < 1000; ++i) spans.Add(At(i), At(i + 1));
  EXPECT_EQ(spans.After(At(0)), absl::Seconds(1000));
}

TEST(TimeSpansTest, ForgetsTheOldestOfMany) {
  TimeSpans spans;
  for (int i = 0; i < 40; i += 2) spans.Add(At(i), At(i + 1));
  EXPECT_EQ(spans.After(At(0)), absl::Seconds(16));
  EXPECT_EQ(spans.After(At(38)), absl::Seconds(1));
}

TEST(TimeSpansTest, IgnoresAnEmptySpan) {
  TimeSpans spans;
  for (int i = 0; i < 40; ++i) spans.Add(At(2 * i), At(2 * i));
  EXPECT_EQ(spans.After(At(0)), absl::ZeroDuration());
}

}  // namespace
}  // namespace sluice

// The estimated offset of another clock, beside the true one.

#include "common/trace/clock_offset.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);

absl::Time At(absl::Duration since) { return absl::UnixEpoch() + absl::Hours(1) + since; }

// Round trips to a clock that is `ahead` of this one.
class Other {
 public:
  explicit Other(absl::Duration ahead) : ahead_(ahead) {}

  // A round trip that takes `there` on the way out, and `back` on the way back.
  void Ask(ClockOffset& offset, absl::Duration there, absl::Duration back) {
    const absl::Time sent = At(absl::Seconds(++asked_));
    offset.Note(sent, sent + there + ahead_, sent + there + back);
  }

 private:
  const absl::Duration ahead_;
  int asked_ = 0;
};

TEST(ClockOffsetTest, IsNothingBeforeTheFirstRoundTrip) {
  EXPECT_EQ(ClockOffset().offset(), absl::ZeroDuration());
}

TEST(ClockOffsetTest, IsExactWhereBothWaysTakeEquallyLong) {
  for (const absl::Duration ahead : {absl::Seconds(3), -absl::Seconds(3), 7 * kMs}) {
    ClockOffset offset;
    Other(ahead).Ask(offset, kMs, kMs);
    EXPECT_EQ(offset.offset(), ahead);
  }
}

TEST(ClockOffsetTest, IsOffByHalfTheDifferenceOfTheWays) {
  ClockOffset offset;
  Other(absl::Seconds(1)).Ask(offset, 5 * kMs, kMs);
  EXPECT_EQ(offset.offset(), absl::Seconds(1) + 2 * kMs);
}

TEST(ClockOffsetTest, BelievesTheFastestOfTheLatestRoundTrips) {
  ClockOffset offset;
  Other other(absl::Seconds(1));
  other.Ask(offset, 9 * kMs, kMs);
  other.Ask(offset, kMs, kMs);
  EXPECT_EQ(offset.offset(), absl::Seconds(1));
  other.Ask(offset, 9 * kMs, kMs);
  EXPECT_EQ(offset.offset(), absl::Seconds(1));
}

TEST(ClockOffsetTest, ForgetsRoundTripsOfLongAgo) {
  ClockOffset offset;
  Other(absl::Seconds(1)).Ask(offset, kMs, kMs);
  Other drifted(absl::Seconds(2));
  for (size_t i = 0; i < ClockOffset::kRoundTrips; ++i) drifted.Ask(offset, 2 * kMs, 2 * kMs);
  EXPECT_EQ(offset.offset(), absl::Seconds(2));
}

TEST(ClockOffsetTest, TakesClocksForEqualThatMayBe) {
  ClockOffset offset;
  Other same(absl::ZeroDuration());
  same.Ask(offset, 3 * kMs, kMs);  // its middle is off by 1 ms
  EXPECT_EQ(offset.offset(), absl::ZeroDuration());
  Other near(kMs);
  near.Ask(offset, kMs / 4, kMs / 4);  // not possible if they were equal
  EXPECT_EQ(offset.offset(), kMs);
}

TEST(ClockOffsetTest, TakesARoundTripWithinOneTickOfTheClock) {
  ClockOffset offset;
  Other(absl::Seconds(1)).Ask(offset, absl::ZeroDuration(), absl::ZeroDuration());
  EXPECT_EQ(offset.offset(), absl::Seconds(1));
}

TEST(ClockOffsetTest, PassesOverARoundTripDuringWhichTheClockWasSetBack) {
  ClockOffset offset;
  offset.Note(At(absl::Seconds(1)), At(absl::Seconds(9)), At(absl::ZeroDuration()));
  EXPECT_EQ(offset.offset(), absl::ZeroDuration());
}

}  // namespace
}  // namespace sluice

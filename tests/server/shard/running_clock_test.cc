#include "server/shard/running_clock.h"

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace sluice {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);

TEST(RunningClockTest, GoesWithTheClockWhileTheProcessRuns) {
  FakeClock clock;
  const RunningClock running(clock, kTick);
  for (const absl::Duration passes : {kTick, absl::ZeroDuration(), kTick / 3, 2 * kTick}) {
    clock.Advance(passes);
    EXPECT_EQ(running.Now(), clock.Now());
  }
}

TEST(RunningClockTest, StandsStillWhileTheProcessIsStopped) {
  FakeClock clock;
  const RunningClock running(clock, kTick);
  const absl::Time before = running.Now();
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(running.Now(), before + 2 * kTick);
  EXPECT_EQ(running.Now(), before + 2 * kTick);
  clock.Advance(kTick);
  EXPECT_EQ(running.Now(), before + 3 * kTick);
  clock.Advance(absl::Hours(2));
  EXPECT_EQ(running.Now(), before + 5 * kTick);
}

TEST(RunningClockTest, WithoutATickNoticesNoGap) {
  FakeClock clock;
  const RunningClock running(clock, absl::InfiniteDuration());
  clock.Advance(absl::Hours(1000));
  EXPECT_EQ(running.Now(), clock.Now());
}

}  // namespace
}  // namespace sluice

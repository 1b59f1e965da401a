// What the wall clock does to the clocks and waits of a process: nothing.

#include "common/base/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/stop_flag.h"
#include "gtest/gtest.h"

namespace {

// By how much the wall clock of this process was set.
std::atomic<int64_t> wall_clock_set_by{0};

}  // namespace

// Takes the place of the C library's function, also for Abseil.
extern "C" int clock_gettime(clockid_t id, timespec* time) {
  const long failed = syscall(SYS_clock_gettime, id, time);
  if (failed == 0 && id == CLOCK_REALTIME) time->tv_sec += wall_clock_set_by;
  return static_cast<int>(failed);
}

namespace sluice {
namespace {

constexpr int64_t kHour = 3600;

void SetWallClock(int64_t seconds) {
  const absl::Time before = absl::Now();
  wall_clock_set_by += seconds;
  // Abseil reads the system's clock from time to time only.
  while (absl::AbsDuration(absl::Now() - before) < absl::Minutes(30)) {
  }
}

TEST(RealClockTest, DoesNotGoBackWithTheWallClock) {
  const absl::Time before = RealClock().Now();
  SetWallClock(-kHour);
  EXPECT_GE(RealClock().Now(), before);
}

TEST(RealClockTest, DoesNotJumpAheadWithTheWallClock) {
  const absl::Time before = RealClock().Now();
  SetWallClock(kHour);
  EXPECT_LT(RealClock().Now(), before + absl::Minutes(30));
}

// With a deadline of the wall clock, this would last for an hour.
TEST(StopFlagTest, WaitsForItsTimeAlsoIfTheWallClockWasSet) {
  SetWallClock(kHour);
  StopFlag flag;
  EXPECT_FALSE(flag.WaitFor(absl::Milliseconds(1)));
}

TEST(StopFlagTest, ARaisedFlagEndsAllWaits) {
  StopFlag flag;
  flag.Raise();
  EXPECT_TRUE(flag.WaitFor(absl::Hours(24)));
  EXPECT_TRUE(flag.WaitFor(absl::ZeroDuration()));
}

}  // namespace
}  // namespace sluice

#include "worker/connection/name_wait.h"

#include "absl/strings/cord.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

const absl::Time kNow = absl::UnixEpoch();

absl::Status Taken() { return MakeError(Reason::kNameTaken, "taken"); }

absl::Status TakenFor(absl::Duration left) {
  absl::Status taken = Taken();
  taken.SetPayload("sluice/retry_after", absl::Cord(absl::FormatDuration(left)));
  return taken;
}

// Asks until the wait is over. `left` says what the server answers after so long.
template <typename Left>
absl::Duration TimeOf(NameWait& wait, Left left) {
  absl::Time now = kNow;
  for (;;) {
    const auto pause = wait.PauseAfter(TakenFor(left(now - kNow)), now);
    if (!pause.has_value()) return now - kNow;
    now += *pause;
    if (left(now - kNow) <= absl::ZeroDuration()) return now - kNow;
  }
}

TEST(NameWaitTest, LastsUntilTheServerGivesUpASilentProcess) {
  NameWait wait(absl::Seconds(60));
  EXPECT_EQ(TimeOf(wait, [](absl::Duration passed) { return absl::Seconds(30) - passed; }),
            absl::Seconds(30));
  EXPECT_EQ(wait.TakeNews(), absl::Seconds(28));
  EXPECT_EQ(wait.TakeNews(), absl::nullopt);
}

TEST(NameWaitTest, EndsWhenTheServerHasHeardTheOtherProcess) {
  NameWait wait(absl::Seconds(60));
  const auto left = [](absl::Duration passed) {
    const absl::Duration heard =
        passed < absl::Seconds(3) ? absl::ZeroDuration() : absl::Seconds(3);
    return absl::Seconds(5) - (passed - heard);
  };
  EXPECT_EQ(TimeOf(wait, left), absl::Seconds(3));
}

TEST(NameWaitTest, IsShortForAProcessThatIsHeardAllTheTime) {
  NameWait wait(absl::Seconds(60));
  EXPECT_EQ(TimeOf(wait, [](absl::Duration) { return absl::Seconds(5); }), NameWait::kShort);
  EXPECT_EQ(wait.TakeNews(), absl::nullopt);
}

TEST(NameWaitTest, LastsNoLongerThanItMay) {
  NameWait wait(absl::Seconds(10));
  EXPECT_EQ(TimeOf(wait, [](absl::Duration passed) { return absl::Seconds(300) - passed; }),
            absl::Seconds(10));
  EXPECT_EQ(wait.TakeNews(), absl::Seconds(8));
}

TEST(NameWaitTest, IsShortIfTheServerDoesNotSayHowLong) {
  NameWait wait(absl::Seconds(60));
  EXPECT_TRUE(wait.PauseAfter(Taken(), kNow).has_value());
  EXPECT_FALSE(wait.PauseAfter(Taken(), kNow + NameWait::kShort).has_value());
}

TEST(NameWaitTest, OtherErrorsAreNotWaitedFor) {
  NameWait wait(absl::Seconds(60));
  EXPECT_FALSE(wait.PauseAfter(MakeError(Reason::kEvicted, "evicted"), kNow).has_value());
  EXPECT_FALSE(wait.PauseAfter(absl::OkStatus(), kNow).has_value());
}

}  // namespace
}  // namespace sluice

#include "worker/connection/call_retry.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(CallRetryTest, PausesLongerBeforeEachAttemptUpToFiveSeconds) {
  EXPECT_EQ(PauseBeforeRejoin(0), absl::ZeroDuration());
  EXPECT_EQ(PauseBeforeRejoin(1), absl::Milliseconds(50));
  EXPECT_EQ(PauseBeforeRejoin(2), absl::Milliseconds(100));
  EXPECT_EQ(PauseBeforeRejoin(7), absl::Milliseconds(3200));
  EXPECT_EQ(PauseBeforeRejoin(8), absl::Seconds(5));
  EXPECT_EQ(PauseBeforeRejoin(1000), absl::Seconds(5));
}

TEST(CallRetryTest, AllPausesTogetherAreMoreThanAMinute) {
  absl::Duration all;
  for (int attempt = 0; attempt < kMaxRejoins; ++attempt) all += PauseBeforeRejoin(attempt);
  EXPECT_GT(all, absl::Minutes(1));
}

}  // namespace
}  // namespace sluice

#include "common/security/cipher_rate.h"

#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

TEST(CipherRateTest, IsTheRecordsThatWereEncryptedInTheTime) {
  // Each look at the clock is a millisecond after the one before.
  absl::Time now = absl::UnixEpoch();
  const auto clock = [&now] { return now += absl::Milliseconds(1); };
  EXPECT_THAT(MeasureCipher(absl::Milliseconds(10), clock), IsOkAndHolds(16384 * 1000.0));
  EXPECT_EQ(now, absl::UnixEpoch() + absl::Milliseconds(11));  // ten records
}

}  // namespace
}  // namespace sluice

// When a connection has to be closed, by the numbers of its calls.

#include "server/rpc/listening/call_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kStart = absl::Seconds(1000);

CallRules SmallRules() {
  CallRules rules;
  rules.open = 8;
  rules.broken = 4;
  rules.unfinished = 100;
  rules.first_call = absl::Seconds(20);
  return rules;
}

class CallRulesTest : public ::testing::Test {
 protected:
  std::string At(absl::Duration since_start, const CallCounts& counts) {
    return judge_.Judge(counts, kStart + since_start);
  }

  CallJudge judge_{SmallRules(), kStart};
};

TEST_F(CallRulesTest, LetsOpenCallsBeUpToTheLimit) {
  EXPECT_THAT(At(absl::ZeroDuration(), {8, 0, 0}), IsEmpty());
  EXPECT_THAT(At(absl::ZeroDuration(), {100, 90, 2}), IsEmpty());
  EXPECT_THAT(At(absl::ZeroDuration(), {101, 90, 2}),
              HasSubstr("it has 9 unfinished calls, expected at most 8"));
}

TEST_F(CallRulesTest, LetsCallsBreakAtTheirRateForEver) {
  for (int second = 0; second < 100; ++second) {
    EXPECT_THAT(At(absl::Seconds(second), {1000, 1000 - 4 * (second + 1), 4 * (second + 1)}),
                IsEmpty());
  }
}

TEST_F(CallRulesTest, ClosesAConnectionWhoseCallsBreakFaster) {
  EXPECT_THAT(At(absl::ZeroDuration(), {4, 0, 4}), IsEmpty());
  EXPECT_THAT(At(absl::Milliseconds(250), {5, 0, 5}), IsEmpty());
  EXPECT_THAT(At(absl::Milliseconds(300), {6, 0, 6}),
              HasSubstr("it broke calls off faster than 4 in a second"));
}

TEST_F(CallRulesTest, ClosesAConnectionThatSendsWithoutEndingAMessageOrMetadata) {
  EXPECT_THAT(At(absl::ZeroDuration(), {1, 0, 0, 0, 50}), IsEmpty());
  EXPECT_THAT(At(absl::ZeroDuration(), {1, 0, 0, 0, 150}), IsEmpty());
  EXPECT_THAT(At(absl::ZeroDuration(), {1, 0, 0, 1, 900}), IsEmpty());   // a message ended
  EXPECT_THAT(At(absl::ZeroDuration(), {2, 0, 0, 1, 1800}), IsEmpty());  // a call began
  EXPECT_THAT(At(absl::ZeroDuration(), {2, 0, 0, 1, 1900}), IsEmpty());
  EXPECT_THAT(At(absl::ZeroDuration(), {2, 0, 0, 1, 1901}),
              HasSubstr("it sent 101 bytes without the end of a message"));
}

// Between two looks the rate is an average: nobody knows when the calls broke.
TEST_F(CallRulesTest, LetsCallsBreakAtTheirRateBetweenLooksThatAreFarApart) {
  EXPECT_THAT(At(absl::ZeroDuration(), {1, 1, 0}), IsEmpty());
  EXPECT_THAT(At(absl::Seconds(100), {405, 1, 404}), IsEmpty());
  EXPECT_THAT(At(absl::Seconds(200), {806, 1, 805}), HasSubstr("faster"));
}

TEST_F(CallRulesTest, SavesNoMoreThanOneSecondOfBrokenCalls) {
  EXPECT_THAT(At(absl::Hours(1), {1, 1, 0}), IsEmpty());
  EXPECT_THAT(At(absl::Hours(1), {5, 1, 4}), IsEmpty());
  EXPECT_THAT(At(absl::Hours(1), {6, 1, 5}), HasSubstr("faster"));
}

TEST_F(CallRulesTest, ClosesAConnectionThatBeginsNoCallInTime) {
  EXPECT_EQ(judge_.first_call_due(), kStart + absl::Seconds(20));
  EXPECT_THAT(At(absl::Seconds(19), {}), IsEmpty());
  EXPECT_TRUE(judge_.awaits_first_call());
  EXPECT_THAT(At(absl::Seconds(20), {}), HasSubstr("it began no call within 20s"));
}

TEST_F(CallRulesTest, ForgetsTheFirstCallOnceThereWasOne) {
  EXPECT_THAT(At(absl::Seconds(1), {1, 1, 0}), IsEmpty());
  EXPECT_FALSE(judge_.awaits_first_call());
  EXPECT_THAT(At(absl::Hours(1), {1, 1, 0}), IsEmpty());
}

}  // namespace
}  // namespace sluice

#include "tools/doctor/server_checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

ProbedServer Server(const char* version, uint32_t revision) { return {version, revision, {}}; }

TEST(ServerChecksTest, AgreeWithTheSameVersion) {
  const Finding same = JudgeVersion(Server("0.1.0", 1), {0, 1}, "0.1.0");
  EXPECT_EQ(same.verdict, Verdict::kOk);
  EXPECT_EQ(same.text,
            "the server runs Sluice 0.1.0 (revision 1 of the protocol), as this machine does");
}

TEST(ServerChecksTest, NameTheOlderSide) {
  const Finding server = JudgeVersion(Server("0.9.0", 1), {0, 1}, "0.10.0");
  EXPECT_EQ(server.verdict, Verdict::kWarning);
  EXPECT_THAT(server.text, HasSubstr("but upgrade the server"));
  EXPECT_THAT(JudgeVersion(Server("1.0", 1), {0, 1}, "0.10.0").text,
              HasSubstr("but upgrade this machine"));
  EXPECT_THAT(
      JudgeVersion(Server("new\n", 1), {0, 1}, "0.10.0").text,
      HasSubstr("runs Sluice new\\n (revision 1 of the protocol), this machine 0.10.0; they "
                "understand each other, but upgrade the older side"));
}

TEST(ServerChecksTest, KnowWhichRevisionsFit) {
  const Finding old = JudgeVersion(Server("0.1.0", 1), {2, 3}, "0.2.0");
  EXPECT_EQ(old.verdict, Verdict::kWrong);
  EXPECT_THAT(old.text, HasSubstr("the worker needs 2 or later"));
  EXPECT_THAT(old.text, HasSubstr("upgrade the server"));
  const Finding newer = JudgeVersion(Server("0.3.0", 4), {2, 3}, "0.2.0");
  EXPECT_EQ(newer.verdict, Verdict::kWarning);
  EXPECT_THAT(newer.text, HasSubstr("upgrade this machine"));
}

TEST(ServerChecksTest, TakeAServerThatTellsNoVersionForAnOldOne) {
  const Finding old = JudgeVersion(Server("", 0), {0, 3}, "0.2.0");
  EXPECT_EQ(old.verdict, Verdict::kWarning);
  EXPECT_THAT(old.text, HasSubstr("older than this machine's (Sluice 0.2.0); upgrade the server"));
}

TEST(ServerChecksTest, WarnOfAClockThatIsMoreThanFiveSecondsOff) {
  EXPECT_EQ(JudgeClock(absl::Seconds(5), absl::ZeroDuration()).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeClock(absl::Seconds(-6), absl::Seconds(1)).verdict, Verdict::kOk);
  const Finding behind = JudgeClock(absl::Milliseconds(-3600500), absl::ZeroDuration());
  EXPECT_EQ(behind.verdict, Verdict::kWarning);
  EXPECT_THAT(behind.text, HasSubstr("it is 1h behind this machine's"));
  EXPECT_THAT(JudgeClock(absl::Seconds(9), absl::ZeroDuration()).text, HasSubstr("9s ahead of"));
}

}  // namespace
}  // namespace sluice

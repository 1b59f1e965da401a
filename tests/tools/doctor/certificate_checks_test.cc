#include "tools/doctor/certificate_checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);  // 2023-11-14 22:13:20

Finding Valid(int from_days, int to_days) {
  const absl::Duration day = absl::Hours(24);
  return JudgeValidity({kNow + from_days * day, kNow + to_days * day}, kNow);
}

TEST(CertificateChecksTest, WarnBelowThirtyDays) {
  EXPECT_EQ(Valid(-1, 30).verdict, Verdict::kOk);
  EXPECT_EQ(Valid(-1, 30).text, "30.0 days left, until 2023-12-14 22:13 UTC");
  EXPECT_EQ(Valid(-1, 29).verdict, Verdict::kWarning);
  EXPECT_THAT(Valid(-1, 29).text, HasSubstr("29.0 days left"));
}

TEST(CertificateChecksTest, SayWhenItExpiredAndWhenItBegins) {
  EXPECT_EQ(Valid(-9, -2).verdict, Verdict::kWrong);
  EXPECT_THAT(Valid(-9, -2).text, HasSubstr("expired on 2023-11-12 22:13 UTC, 2.0 days ago"));
  EXPECT_EQ(Valid(3, 9).verdict, Verdict::kWrong);
  EXPECT_THAT(Valid(3, 9).text, HasSubstr("only from 2023-11-17 22:13 UTC on, in 3.0 days"));
}

TEST(CertificateChecksTest, NameHostsAndRoles) {
  CertificateFacts facts;
  facts.may_serve = true;
  facts.hosts = {"node1", "bad\nname"};
  EXPECT_EQ(JudgePurpose(facts).text, "it is for a server at node1, bad\\nname");
  facts.may_call = true;
  facts.roles = Roles(Role::kWorker) | Role::kObserver;
  EXPECT_EQ(JudgePurpose(facts).verdict, Verdict::kOk);
  EXPECT_THAT(JudgePurpose(facts).text,
              HasSubstr(", and a caller with the role worker or observer"));
}

TEST(CertificateChecksTest, WarnOfACertificateThatNobodyCanUse) {
  CertificateFacts facts;
  facts.may_call = true;
  facts.hosts = {"node1"};  // without the right to serve
  EXPECT_EQ(JudgePurpose(facts).verdict, Verdict::kWarning);
  EXPECT_THAT(JudgePurpose(facts).text, HasSubstr("URI:sluice:worker"));
}

}  // namespace
}  // namespace sluice

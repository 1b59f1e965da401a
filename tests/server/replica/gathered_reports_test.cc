#include "server/replica/gathered_reports.h"

#include <utility>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr uint32_t kReplicas = 3;

HaveReport Part(uint64_t push, absl::optional<double> norm = absl::nullopt) {
  return {PushId(push), absl::OkStatus(), norm, 8};
}

class GatheredReportsTest : public ::testing::Test {
 protected:
  GatheredReportsTest() { reports_.Await(PushId(1)); }

  GatheredReports reports_{kReplicas};
};

TEST_F(GatheredReportsTest, APushHasArrivedWhenAllReplicasHaveIt) {
  reports_.Await(PushId(2));
  EXPECT_FALSE(reports_.Take(2, Part(1)).has_value());
  EXPECT_FALSE(reports_.Take(0, Part(2)).has_value());
  EXPECT_FALSE(reports_.Take(0, Part(1)).has_value());
  const absl::optional<HaveReport> whole = reports_.Take(1, Part(1));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->push, PushId(1));
  EXPECT_THAT(whole->refused, IsOk());
  EXPECT_EQ(whole->bytes, 24u);
  EXPECT_EQ(whole->norm, absl::nullopt);
}

TEST_F(GatheredReportsTest, CountsReplicasAndNotReports) {
  for (const uint32_t replica : {0, 0, 0, 2, 2}) {
    EXPECT_FALSE(reports_.Take(replica, Part(1)).has_value());
  }
  const absl::optional<HaveReport> whole = reports_.Take(1, Part(1));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->bytes, 24u);
}

TEST_F(GatheredReportsTest, TheNormIsThatOfTheWholeGradient) {
  reports_.Take(0, Part(1, 2));
  reports_.Take(1, Part(1, 3));
  EXPECT_EQ(reports_.Take(2, Part(1, 6))->norm, 7.0);
}

TEST_F(GatheredReportsTest, TheFirstRefusedPartRefusesThePush) {
  EXPECT_FALSE(reports_.Take(2, Part(1, 3)).has_value());
  HaveReport bad = Part(1, 4);
  bad.refused = MakeError(Reason::kNotFinite, "of replica 1");
  const absl::optional<HaveReport> whole = reports_.Take(1, bad);
  ASSERT_TRUE(whole.has_value());  // replica 0 has said nothing, and perhaps never will
  EXPECT_EQ(whole->push, PushId(1));
  EXPECT_EQ(ReasonOf(whole->refused), Reason::kNotFinite);
  EXPECT_EQ(whole->norm, absl::nullopt);
  EXPECT_EQ(whole->bytes, 16u);
}

TEST_F(GatheredReportsTest, TellsARefusalOnce) {
  HaveReport bad = Part(1);
  bad.refused = MakeError(Reason::kBadChunk, "of replica 0");
  ASSERT_TRUE(reports_.Take(0, bad).has_value());
  for (const uint32_t replica : {0, 1, 2}) {
    EXPECT_FALSE(reports_.Take(replica, bad).has_value());
    EXPECT_FALSE(reports_.Take(replica, Part(1)).has_value());
  }
}

TEST_F(GatheredReportsTest, AReplicaThatHasItsPartCannotRefuseIt) {
  HaveReport bad = Part(1);
  bad.refused = MakeError(Reason::kBadChunk, "of replica 0");
  EXPECT_FALSE(reports_.Take(0, Part(1)).has_value());
  EXPECT_FALSE(reports_.Take(0, bad).has_value());
  EXPECT_FALSE(reports_.Take(1, Part(1)).has_value());
  EXPECT_THAT(reports_.Take(2, Part(1))->refused, IsOk());
}

TEST_F(GatheredReportsTest, ForgetsADroppedPush) {
  reports_.Take(0, Part(1));
  reports_.Take(1, Part(1));
  reports_.Forget(PushId(1));
  for (const uint32_t replica : {2, 0, 1}) {
    EXPECT_FALSE(reports_.Take(replica, Part(1)).has_value());
  }
}

}  // namespace
}  // namespace sluice

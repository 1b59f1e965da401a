#include "tools/bench/crowds/process_cost.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice::bench {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;

constexpr pid_t kNobody = 1 << 30;  // more than any process id

TEST(ProcessCostTest, GrowsWithWhatTheProcessDoes) {
  const auto before = CostOf(getpid());
  ASSERT_THAT(before, IsOk());
  EXPECT_GT(before->resident_bytes, 1'000'000u);
  EXPECT_GE(before->peak_bytes, before->resident_bytes);
  auto after = before;
  while (after.ok() && after->cpu_seconds < before->cpu_seconds + 0.02) after = CostOf(getpid());
  EXPECT_THAT(after, IsOk());
}

TEST(ProcessCostTest, IsNotFoundWithoutTheProcess) {
  EXPECT_THAT(CostOf(kNobody), HasCode(absl::StatusCode::kNotFound, ::testing::_));
  EXPECT_THAT(WakeupsOf(kNobody), IsEmpty());
}

TEST(WakeupsTest, AreThoseOfEveryThread) {
  EXPECT_THAT(WakeupsOf(getpid()), Contains(Key(getpid())));
  EXPECT_EQ(WakeupsBetween({{1, 10}, {2, 7}}, {{1, 15}, {2, 7}}), 5u);
}

TEST(WakeupsTest, CountAThreadThatBeganAndNoneThatEnded) {
  EXPECT_EQ(WakeupsBetween({{1, 10}, {2, 7}}, {{1, 11}, {3, 4}}), 5u);
}

}  // namespace
}  // namespace sluice::bench

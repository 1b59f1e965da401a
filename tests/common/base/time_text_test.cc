#include "common/base/time_text.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(TimeTextTest, NamesTheTwoLargestUnits) {
  EXPECT_EQ(WholeTimeText(absl::Milliseconds(900)), "0 s");
  EXPECT_EQ(WholeTimeText(absl::Seconds(59)), "59 s");
  EXPECT_EQ(WholeTimeText(absl::Seconds(190)), "3 min 10 s");
  EXPECT_EQ(WholeTimeText(absl::Seconds(7525)), "2 h 5 min");
  EXPECT_EQ(WholeTimeText(absl::Hours(76)), "3 d 4 h");
}

TEST(TimeTextTest, LeavesASmallerUnitOutThatIsZero) {
  EXPECT_EQ(WholeTimeText(absl::Minutes(3)), "3 min");
  EXPECT_EQ(WholeTimeText(absl::Hours(2) + absl::Seconds(9)), "2 h");
  EXPECT_EQ(WholeTimeText(absl::Hours(48)), "2 d");
}

}  // namespace
}  // namespace sluice

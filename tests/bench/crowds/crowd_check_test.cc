#include "tools/bench/crowds/crowd_check.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::IsEmpty;

using Rows = std::map<std::string, std::string>;

// Of three workers in sync: two made seven rounds, one made six.
constexpr CrowdTotals kTotals = {20, 0, 0, 7};

Rows Table(const std::string& steps, const std::string& received, const std::string& accepted) {
  return {{"steps", steps}, {"pushes received", received}, {"accepted", accepted}, {"stale", "0"}};
}

std::string Wrong(const Rows& rows, SomeWere killed = SomeWere::kNotKilled,
                  const std::string& mode = "sync") {
  return WhatIsWrong(rows, mode, kTotals, killed);
}

TEST(CrowdCheckTest, IsContentIfEverythingAddsUp) {
  EXPECT_THAT(Wrong(Table("7", "20", "20")), IsEmpty());
  EXPECT_THAT(Wrong(Table("20", "20", "20"), SomeWere::kNotKilled, "async"), IsEmpty());
}

TEST(CrowdCheckTest, NamesACounterThatDiffers) {
  EXPECT_EQ(Wrong(Table("7", "21", "20")), "the server counted 21 pushes received, expected 20");
  EXPECT_EQ(Wrong(Table("7", "19", "19")), "the server counted 19 accepted, expected 20");
  EXPECT_EQ(Wrong(Table("7", "21", "21")), "the server counted 21 accepted, expected 20");
  EXPECT_EQ(Wrong(Table("8", "20", "20")), "the server counted 8 steps, expected 7");
  EXPECT_EQ(Wrong(Table("7", "20", "20"), SomeWere::kNotKilled, "async"),
            "the server counted 7 steps, expected 20");
  Rows stale = Table("7", "22", "20");
  stale["stale"] = "2";
  EXPECT_EQ(Wrong(stale), "the server counted 2 stale, expected 0");
  EXPECT_EQ(Wrong({}), "the server ended without its closing table");
  EXPECT_EQ(WhatIsWrong(Table("7", "20", "20"), "sync", {20, 0, 1, 7}, SomeWere::kNotKilled),
            "1 pushes were duplicate or skipped");
}

// Nobody knows what they were answered.
TEST(CrowdCheckTest, AllowsForThePushesOfTheKilled) {
  Rows rows = Table("7", "28", "25");
  rows["aborted"] = "3";
  EXPECT_THAT(Wrong(rows, SomeWere::kKilled), IsEmpty());
  EXPECT_EQ(Wrong(Table("7", "19", "19"), SomeWere::kKilled),
            "the server counted 19 accepted, expected 20");
}

}  // namespace
}  // namespace sluice::bench

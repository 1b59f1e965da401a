#include "common/base/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/fake_clock.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProgressLineTest : public testing::Test {
 protected:
  ProgressOutput Terminal() {
    ProgressOutput output;
    output.terminal = &terminal_;
    return output;
  }

  ProgressOutput Lines() {
    ProgressOutput output;
    output.lines = [this](const std::string& line) { lines_.push_back(line); };
    return output;
  }

  FakeClock clock_;
  std::ostringstream terminal_;
  std::vector<std::string> lines_;
};

TEST_F(ProgressLineTest, SaysALineEveryTenSeconds) {
  ProgressLine line("reading a", 200, Lines(), clock_);
  clock_.Advance(absl::Seconds(9));
  line.Reach(10);
  EXPECT_THAT(lines_, IsEmpty());
  clock_.Advance(absl::Seconds(1));
  line.Reach(20);
  line.Reach(21);
  clock_.Advance(absl::Seconds(10));
  line.Reach(150);
  EXPECT_THAT(lines_, ElementsAre("reading a: 10 %, 1 min 30 s left", "reading a: 75 %, 6 s left"));
}

TEST_F(ProgressLineTest, KnowsNoTimeBeforeAnythingIsDone) {
  ProgressLine line("reading a", 200, Lines(), clock_);
  clock_.Advance(absl::Seconds(10));
  line.Reach(0);
  EXPECT_THAT(lines_, ElementsAre("reading a: 0 %"));
}

TEST_F(ProgressLineTest, RenewsABarOnATerminalFiveTimesASecond) {
  ProgressLine line("reading a", 8, Terminal(), clock_);
  line.Reach(1);
  EXPECT_EQ(terminal_.str(), "");
  clock_.Advance(absl::Milliseconds(200));
  line.Reach(2);
  EXPECT_EQ(terminal_.str(), "\r\033[Kreading a [#####...............] 25 %, 0 s left");
}

TEST_F(ProgressLineTest, RemovesItsBarInTheEnd) {
  {
    ProgressLine line("reading a", 8, Terminal(), clock_);
    clock_.Advance(absl::Seconds(1));
    line.Reach(8);
    terminal_.str("");
  }
  EXPECT_EQ(terminal_.str(), "\r\033[K");
}

TEST_F(ProgressLineTest, LeavesATerminalAsItIsIfTheWorkWasShort) {
  { ProgressLine("reading a", 8, Terminal(), clock_).Reach(8); }
  EXPECT_EQ(terminal_.str(), "");
}

TEST_F(ProgressLineTest, SaysNothingWithoutAnOutput) {
  ProgressLine line("reading a", 8, ProgressOutput(), clock_);
  clock_.Advance(absl::Seconds(99));
  line.Reach(8);
}

}  // namespace
}  // namespace sluice

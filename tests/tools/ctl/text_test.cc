// Words and numbers of sluicectl.

#include "tools/ctl/render/text.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(PrintableTest, LeavesPrintableAsciiAsItIs) {
  EXPECT_EQ(Printable("worker-0 \"a\" ~!"), "worker-0 \"a\" ~!");
}

TEST(PrintableTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a\\033[2Jb");
  EXPECT_EQ(Printable("a\r\nb\tc\x7f"), "a\\015\\012b\\011c\\177");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\302\\233");           // the control CSI, in UTF-8
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\342\\200\\256");  // turns the direction of text
  EXPECT_EQ(Printable(std::string(1, '\0')), "\\000");
}

TEST(PrintableTest, TellsAnEscapeFromTheSameLetters) {
  EXPECT_EQ(Printable("\\033"), "\\\\033");
  EXPECT_EQ(Printable("\033"), "\\033");
}

TEST(BytesTextTest, TakesTheUnitWithThreeDigits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.0 kB");
  EXPECT_EQ(BytesText(81'945'568), "81.9 MB");
  EXPECT_EQ(BytesText(std::numeric_limits<uint64_t>::max()), "18.4 EB");
}

TEST(TimeTextTest, TakesTwoUnitsFromAMinuteOn) {
  EXPECT_EQ(TimeText(absl::ZeroDuration()), "0 us");
  EXPECT_EQ(TimeText(absl::Microseconds(800)), "800 us");
  EXPECT_EQ(TimeText(absl::Microseconds(42'450)), "42.5 ms");
  EXPECT_EQ(TimeText(absl::Seconds(15.5)), "15.5 s");
  EXPECT_EQ(TimeText(absl::Seconds(185)), "3 min 5 s");
  EXPECT_EQ(TimeText(absl::Seconds(180)), "3 min");
  EXPECT_EQ(TimeText(absl::Minutes(125)), "2 h 5 min");
  EXPECT_EQ(TimeText(absl::Hours(76)), "3 d 4 h");
  EXPECT_EQ(TimeText(absl::Seconds(-2)), "-2.0 s");
  EXPECT_EQ(TimeText(absl::InfiniteDuration()), "for ever");
}

TEST(NumbersTest, HaveAsManyDigitsAsAPersonReads) {
  EXPECT_EQ(RateText(1250.4), "1250");
  EXPECT_EQ(RateText(16.62), "16.6");
  EXPECT_EQ(RateText(0.024), "0.02");
  EXPECT_EQ(ShareText(1, 8), "12.5 %");
  EXPECT_EQ(ShareText(0, 0), "-");
  EXPECT_EQ(CountText(1, "worker"), "1 worker");
  EXPECT_EQ(CountText(0, "worker"), "0 workers");
}

TEST(TableTextTest, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(
      TableText({{"NAME"}, {"STEP", true}, {"HOST"}}, {{"a", "12345", "x"}, {"worker-1", "1", ""}}),
      "NAME       STEP  HOST\n"
      "a         12345  x\n"
      "worker-1      1  \n");
}

}  // namespace
}  // namespace sluice

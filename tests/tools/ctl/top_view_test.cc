// The screens of `sluicectl top`, as text.

#include "tools/ctl/top/top_view.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/ctl/messages.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Kind = TopKey::Kind;

constexpr int kHeight = 24;
constexpr int kWidth = 200;
const absl::Time kStart = absl::FromUnixSeconds(1000);

Sample SampleAt(absl::Time at) { return {at, TrainingState(), FourWorkers()}; }

// Workers w0 to w999; the lag of each is its number.
Sample Thousand() {
  Sample sample = {kStart, TrainingState(), {}};
  for (int i = 0; i < 1000; ++i) {
    v1::Worker& worker = *sample.workers.add_workers();
    worker.set_worker(absl::StrCat("w", i));
    worker.set_presence(v1::PRESENT);
    worker.set_lag(static_cast<uint64_t>(i));
  }
  return sample;
}

std::vector<std::string> TextOf(const std::vector<TopLine>& lines) {
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (const TopLine& line : lines) texts.push_back(line.text);
  return texts;
}

std::vector<std::string> Screen(TopView& view, int height = kHeight, int width = kWidth) {
  return TextOf(view.Render(height, width));
}

// The first words of the rows of workers, in their order.
std::vector<std::string> Names(TopView& view, int height = kHeight) {
  std::vector<std::string> names;
  bool below = false;
  for (const std::string& line : Screen(view, height)) {
    if (below && !line.empty() && !absl::StartsWith(line, "workers ") &&
        !absl::StartsWith(line, "no worker")) {
      names.push_back(line.substr(0, line.find(' ')));
    }
    below = below || absl::StartsWith(line, "WORKER ");
  }
  return names;
}

bool Type(TopView& view, const std::string& letters) {
  bool goes_on = true;
  for (const char letter : letters) goes_on = view.Press({Kind::kLetter, letter}) && goes_on;
  return goes_on;
}

TEST(TopViewTest, ShowsTheJobAndThenItsWorkersByLag) {
  TopView view("node7:7070");
  view.Take(SampleAt(kStart));
  const std::vector<std::string> screen = Screen(view);
  ASSERT_THAT(screen, SizeIs(kHeight));
  EXPECT_EQ(screen[0], "job 2515a06c at node7:7070: TRAINING, step 110, incarnation 1, up 15.5 s");
  EXPECT_EQ(screen[1], "verdict  SLOW: step 110 has waited 2 s for worker-0\\033");
  EXPECT_THAT(screen[2], StartsWith("rules    sync; mean, in the order of rank; "));
  EXPECT_EQ(screen[3], "speed    known with the next sample");
  EXPECT_EQ(screen[4], "workers  2 present, 1 lost, 1 left, 0 evicted; 1 observer");
  EXPECT_THAT(screen[5], StartsWith("step     1 of 3 gradients; awaited: worker-0 (last seen "));
  EXPECT_EQ(screen[6], "WARNING  the loss rises\\033[2J");
  EXPECT_THAT(screen[7], StartsWith("WORKER "));
  EXPECT_THAT(Names(view), ElementsAre("worker-1", "worker-0", "worker-2"));
  EXPECT_THAT(screen.back(), StartsWith("workers 1-3 of 3 by lag "));
}

TEST(TopViewTest, ShowsSpeedsSinceTheSampleBefore) {
  TopView view("a:1");
  view.Take(SampleAt(kStart));
  Sample next = SampleAt(kStart + absl::Seconds(2));
  next.state.set_step(130);
  next.state.mutable_pushes()->set_accepted(391);
  next.state.mutable_pushes()->set_stale(2);
  next.state.set_bytes_received(81945568 + 4'000'000);
  next.workers.mutable_workers(0)->set_accepted(115);
  view.Take(next);
  EXPECT_EQ(
      Screen(view)[3],
      "speed    10.0 steps/s, 30.0 pushes/s, 0.50 stale/s; in 2.0 MB/s (sockets 0 B/s), out 0 "
      "B/s (sockets 0 B/s)");
  Type(view, "s");
  EXPECT_THAT(Names(view), ElementsAre("worker-0", "worker-1", "worker-2"));
}

TEST(TopViewTest, AnotherIncarnationHasNoSpeedYet) {
  TopView view("a:1");
  view.Take(SampleAt(kStart));
  Sample next = SampleAt(kStart + absl::Seconds(2));
  next.state.set_incarnation(2);
  next.state.set_step(3);
  view.Take(next);
  EXPECT_EQ(Screen(view)[3], "speed    known with the next sample");
}

TEST(TopViewTest, ScrollsThroughAThousandWorkers) {
  TopView view("a:1");
  view.Take(Thousand());
  const size_t page = Names(view).size();  // what fits
  ASSERT_EQ(page, static_cast<size_t>(kHeight) - 9);
  EXPECT_EQ(Names(view).front(), "w999");
  view.Press({Kind::kDown});
  EXPECT_EQ(Names(view).front(), "w998");
  view.Press({Kind::kPageDown});
  EXPECT_EQ(Names(view).front(), absl::StrCat("w", 998 - page));
  view.Press({Kind::kPageUp});
  view.Press({Kind::kUp});
  view.Press({Kind::kUp});
  EXPECT_EQ(Names(view).front(), "w999");
  view.Press({Kind::kEnd});
  EXPECT_EQ(Names(view).back(), "w0");
  EXPECT_THAT(Names(view), SizeIs(page));
  EXPECT_THAT(Screen(view).back(), StartsWith("workers 986-1000 of 1000 by lag "));
  view.Press({Kind::kHome});
  EXPECT_EQ(Names(view).front(), "w999");
}

TEST(TopViewTest, FiltersByWhatIsTyped) {
  TopView view("a:1");
  view.Take(Thousand());
  Type(view, "/w99q");
  EXPECT_EQ(Screen(view).back(), "name or host has: w99q_");
  view.Press({Kind::kErase});
  view.Press({Kind::kEnter});
  EXPECT_THAT(Names(view), SizeIs(11));  // w99 and w990 to w999
  EXPECT_THAT(Screen(view).back(), StartsWith("workers 1-11 of 11 by lag with \"w99\""));
  view.Press({Kind::kEscape});
  EXPECT_THAT(Screen(view).back(), HasSubstr(" of 1000 "));
  Type(view, "/nobody");
  view.Press({Kind::kEnter});
  EXPECT_THAT(Screen(view).back(), StartsWith("no worker by lag with \"nobody\""));
}

TEST(TopViewTest, ShowsThoseThatLeftOnRequest) {
  TopView view("a:1", SortKey::kName);
  view.Take(SampleAt(kStart));
  Type(view, "a");
  EXPECT_THAT(Names(view), ElementsAre("worker-0", "worker-1", "worker-2", "x\\033[31m"));
  Type(view, "a");
  EXPECT_THAT(Names(view), SizeIs(3));
}

TEST(TopViewTest, GoesThroughAllOrders) {
  TopView view("a:1", SortKey::kName);
  view.Take(SampleAt(kStart));
  for (const std::string& name : SortNames()) {
    EXPECT_THAT(Screen(view).back(), HasSubstr(absl::StrCat(" by ", name, " ")));
    Type(view, ">");
  }
  EXPECT_THAT(Screen(view).back(), HasSubstr(" by name "));
  Type(view, "<");
  EXPECT_THAT(Screen(view).back(), HasSubstr(" by waits "));
}

TEST(TopViewTest, FitsEverySizeOfATerminal) {
  TopView view("a:1");
  for (int taken = 0; taken < 2; ++taken) {
    for (int height = 0; height < 30; ++height) {
      for (const int width : {0, 1, 20, 80}) {
        const auto screen = Screen(view, height, width);
        EXPECT_LE(screen.size(), static_cast<size_t>(height));
        EXPECT_THAT(screen, Each(SizeIs(::testing::Le(static_cast<size_t>(width)))));
      }
    }
    view.Take(Thousand());
  }
  EXPECT_THAT(Screen(view, 3, 80).back(), StartsWith("workers 1-1 of 1000 "));
}

TEST(TopViewTest, SaysWhyThereIsNothingNewer) {
  TopView view("a:1");
  view.SetTrouble("lost the server\x1b");
  EXPECT_THAT(Screen(view, 2), ElementsAre("waiting for a:1",
                                           "no worker by lag   s order  / "
                                           "filter  a all  h help  q quit"));
  EXPECT_EQ(Screen(view)[1], "lost the server\\033");
  view.Take(SampleAt(kStart));
  view.SetTrouble("lost the server");
  EXPECT_THAT(Screen(view), ::testing::Contains("OLD      lost the server"));
  view.Take(SampleAt(kStart + absl::Seconds(1)));
  EXPECT_THAT(Screen(view), Not(::testing::Contains(StartsWith("OLD "))));
}

TEST(TopViewTest, HelpIsClosedByAnyKeyAndQQuits) {
  TopView view("a:1");
  view.Take(SampleAt(kStart));
  EXPECT_TRUE(Type(view, "h"));
  EXPECT_EQ(Screen(view)[0], "Keys of sluicectl top");
  EXPECT_TRUE(Type(view, "q"));
  EXPECT_THAT(Screen(view)[0], StartsWith("job "));
  EXPECT_FALSE(Type(view, "q"));
}

}  // namespace
}  // namespace sluice

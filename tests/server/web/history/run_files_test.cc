// The runs of a directory, as they are found on a disk that others write to.

#include "server/web/history/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

namespace fs = std::filesystem;

// A run of so many seconds: its loss is 100 at first, and less by 1 each second.
History HistoryOf(const std::string& job, int seconds, double begun = 5000) {
  History history;
  history.BeginJob(job);
  for (int i = 0; i <= seconds; ++i) {
    HistorySample sample;
    sample.values[kTime] = begun + i;
    sample.values[kStep] = 10 * i;
    sample.values[kLoss] = 100 - i;
    history.Add(sample);
  }
  history.SetFacts({"sync", "finished", 0.5, 0.25});
  return history;
}

class RunFilesTest : public ::testing::Test {
 protected:
  RunFilesTest() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  std::string PathOf(const std::string& run) const { return directory_ + "/" + run; }

  // A run that was written so many seconds ago.
  void Write(const std::string& run, const std::string& bytes, int age) const {
    fs::create_directories(PathOf(run));
    const std::string file = PathOf(run) + "/page-history";
    std::ofstream(file, std::ios::binary) << bytes;
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(age));
  }

  std::vector<std::string> Names() {
    const auto runs = files_.Read();
    EXPECT_THAT(runs, IsOk());
    std::vector<std::string> names;
    for (const PastRun& run : *runs) names.push_back(run.name);
    return names;
  }

  const std::string directory_ = ::testing::TempDir() + "/run_files";
  const std::string sound_ = HistoryOf("job", 3).Encode();
  RunFiles files_{directory_};
};

TEST_F(RunFilesTest, ReadsWhatARunWasLike) {
  Write("first", HistoryOf("07466a53", 3).Encode(), 0);
  const auto runs = files_.Read();
  ASSERT_THAT(runs, IsOk());
  ASSERT_THAT(*runs, SizeIs(1));
  const PastRun& run = runs->front();
  EXPECT_EQ(run.name, "first");
  EXPECT_EQ(run.job_id, "07466a53");
  EXPECT_EQ(run.facts.rules, "sync");
  EXPECT_EQ(run.facts.verdict, "finished");
  EXPECT_EQ(run.facts.learning_rate, 0.5);
  EXPECT_EQ(run.facts.loss, 0.25);
  EXPECT_EQ(run.begun, 5000);
  EXPECT_EQ(run.seen, 5002);  // the second of the last row was not over
  EXPECT_EQ(run.step, 20);
  ASSERT_THAT(run.points, SizeIs(3));
  EXPECT_EQ(run.points[1].time, 5001);
  EXPECT_EQ(run.points[1].step, 10);
  EXPECT_EQ(run.points[1].loss, 99);
}

TEST_F(RunFilesTest, ACurveHasAMostOfPoints) {
  const History history = HistoryOf("job", 200);
  EXPECT_THAT(CurveOf(history, 300), SizeIs(201));
  const std::vector<RunPoint> curve = CurveOf(history, 100);
  ASSERT_THAT(curve, SizeIs(67));  // of three rows each
  EXPECT_EQ(curve[0].step, 10);
  EXPECT_EQ(curve[0].loss, 99);
  EXPECT_EQ(curve[66].time, 5199);
  EXPECT_EQ(curve[66].loss, -99);
  EXPECT_THAT(CurveOf(History(), 100), IsEmpty());
}

TEST_F(RunFilesTest, TheOneThatBeganLastComesFirstWhicheverIsWritten) {
  Write("b", HistoryOf("b", 3, 7000).Encode(), 20);
  Write("a", HistoryOf("a", 3, 8000).Encode(), 10);
  Write("c", HistoryOf("c", 3, 6000).Encode(), 30);
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c"));
  Write("c", HistoryOf("c", 9, 6000).Encode(), 1);
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c"));
  fs::remove_all(PathOf("a"));
  EXPECT_THAT(Names(), ElementsAre("b", "c"));
}

TEST_F(RunFilesTest, ARunBeginsWithItsFirstLoss) {
  History history;
  for (int i = 0; i < 5; ++i) {
    HistorySample sample;
    sample.values[kTime] = 5000 + i;
    sample.values[kStep] = i;
    if (i == 2) sample.values[kLoss] = 3;
    history.Add(sample);
  }
  Write("run", history.Encode(), 0);
  const auto runs = files_.Read();
  ASSERT_THAT(runs, IsOk());
  ASSERT_THAT(*runs, SizeIs(1));
  EXPECT_EQ(runs->front().begun, 5002);
  EXPECT_EQ(runs->front().seen, 5003);
}

TEST_F(RunFilesTest, LeavesOutTheOldestOfMany) {
  for (int i = 0; i < 25; ++i) Write(absl::StrCat("run-", i), sound_, 100 * i);
  const std::vector<std::string> names = Names();
  ASSERT_THAT(names, SizeIs(RunFiles::kMostRuns));
  EXPECT_THAT(names, Contains("run-19"));
  EXPECT_THAT(names, Not(Contains("run-20")));
}

// Of which the nanoseconds since 1970 have more than 63 bits.
TEST_F(RunFilesTest, AFileOfADistantFutureIsTheLatest) {
  for (size_t i = 0; i < RunFiles::kMostRuns; ++i) Write(absl::StrCat("run-", i), sound_, 1);
  Write("future", sound_, 1);
  const timespec times[] = {{10'000'000'000, 0}, {10'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (PathOf("future") + "/page-history").c_str(), times, 0), 0);
  EXPECT_THAT(Names(), Contains("future"));
}

TEST_F(RunFilesTest, LeavesOutARunWithoutRowsOrWithEndlessTexts) {
  Write("empty", History().Encode(), 0);
  const std::string endless(201, 'x');
  Write("job", HistoryOf(endless, 3).Encode(), 0);
  History history = HistoryOf("job", 3);
  history.SetFacts({endless, "finished", 0.5, 0.25});
  Write("rules", history.Encode(), 0);
  history.SetFacts({"sync", endless, 0.5, 0.25});
  Write("verdict", history.Encode(), 0);
  Write("long", HistoryOf(endless.substr(1), 3).Encode(), 0);
  EXPECT_THAT(Names(), ElementsAre("long"));
}

TEST_F(RunFilesTest, LeavesOutWhatIsNoHistory) {
  Write("sound", sound_, 0);
  Write("empty", "", 0);
  Write("cut", sound_.substr(0, sound_.size() / 2), 0);
  std::string flipped = sound_;
  flipped[100] = static_cast<char>(flipped[100] ^ 0x10);
  Write("flipped", flipped, 0);
  Write("of another version", "sluice history 8\n" + sound_, 0);
  Write("huge", sound_, 0);
  fs::resize_file(PathOf("huge") + "/page-history", RunFiles::kMostBytes + 1);
  fs::create_directories(PathOf("without"));
  fs::create_directories(PathOf("directory/page-history"));
  fs::create_directories(PathOf("pipe"));
  ASSERT_EQ(mkfifo((PathOf("pipe") + "/page-history").c_str(), 0600), 0);
  std::ofstream(PathOf("file")) << sound_;
  EXPECT_THAT(Names(), ElementsAre("sound"));
}

TEST_F(RunFilesTest, AFileThatWasDamagedIsReadAgainWhenItIsWhole) {
  Write("run", sound_.substr(1), 10);
  EXPECT_THAT(Names(), IsEmpty());
  Write("run", sound_, 5);
  EXPECT_THAT(Names(), ElementsAre("run"));
  Write("run", sound_.substr(1), 0);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RunFilesTest, FollowsNoLink) {
  const std::string outside = directory_ + "-outside";
  fs::create_directories(outside);
  std::ofstream(outside + "/page-history", std::ios::binary) << sound_;
  fs::create_directory_symlink(outside, PathOf("link"));
  fs::create_directories(PathOf("run"));
  fs::create_symlink(outside + "/page-history", PathOf("run") + "/page-history");
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RunFilesTest, SaysWhyADirectoryCannotBeRead) {
  RunFiles absent(directory_ + "/absent");
  EXPECT_THAT(absent.Read(), HasCode(absl::StatusCode::kUnavailable,
                                     HasSubstr("absent: No such file or directory")));
}

}  // namespace
}  // namespace sluice

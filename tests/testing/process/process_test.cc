#include "tests/testing/process/process.h"

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kMoment = absl::Milliseconds(20);

std::unique_ptr<Process> Launch(const std::vector<std::string>& argv,
                                const Process::Environment& environment = {}) {
  auto process = Process::Start(argv, environment);
  EXPECT_THAT(process, IsOk());
  return process.ok() ? *std::move(process) : nullptr;
}

std::unique_ptr<Process> Shell(const std::string& script,
                               const Process::Environment& environment = {}) {
  return Launch({"sh", "-c", script}, environment);
}

// Whether a process runs: it exists and is no corpse that waits for its parent.
bool Runs(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  return std::getline(file, line) && line.substr(line.rfind(')')).find(" Z ") == std::string::npos;
}

TEST(ProcessTest, ReadsBothStreamsInTheOrderOfWriting) {
  const auto process = Shell("echo one; echo two >&2; echo three");
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "one\ntwo\nthree\n");
}

TEST(ProcessTest, PassesArgumentsUntouched) {
  const auto process = Launch({"printf", "<%s>", "a b", "", "$HOME*"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "<a b><><$HOME*>");
}

TEST(ProcessTest, AddsToTheEnvironmentAndReplacesInIt) {
  setenv("SLUICE_INHERITED", "kept", 1);
  setenv("SLUICE_REPLACED", "old", 1);
  const auto process = Shell("echo $SLUICE_INHERITED $SLUICE_REPLACED $SLUICE_ADDED",
                             {{"SLUICE_REPLACED", "new"}, {"SLUICE_ADDED", "x=y"}});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "kept new x=y\n");
}

TEST(ProcessTest, HasAnEmptyInput) {
  const auto process = Launch({"cat"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "");
}

TEST(ProcessTest, TellsTheExitStatusAsOftenAsAsked) {
  const auto process = Shell("exit 3");
  EXPECT_THAT(process->Wait(), IsOkAndHolds(3));
  EXPECT_THAT(process->Wait(absl::ZeroDuration()), IsOkAndHolds(3));
}

TEST(ProcessTest, TellsWhichSignalEndedIt) {
  const auto process = Launch({"sleep", "1000"});
  process->Signal(SIGTERM);
  EXPECT_THAT(process->Wait(), IsOkAndHolds(-SIGTERM));
}

TEST(ProcessTest, LetsTheProcessHandleASignal) {
  const auto process = Shell("trap 'echo caught; exit 5' TERM; echo ready; while :; do :; done");
  ASSERT_THAT(process->WaitForOutput("^ready$"), IsOk());
  process->Signal(SIGTERM);
  EXPECT_THAT(process->Wait(), IsOkAndHolds(5));
  EXPECT_EQ(process->output(), "ready\ncaught\n");
}

TEST(ProcessTest, StartsWithDefaultSignalsWhateverTheTestIgnores) {
  const auto old = signal(SIGTERM, SIG_IGN);
  const auto process = Shell("kill -TERM $$; echo survived");
  signal(SIGTERM, old);
  EXPECT_THAT(process->Wait(), IsOkAndHolds(-SIGTERM));
}

TEST(ProcessTest, IgnoresASignalAfterTheEnd) {
  const auto process = Launch({"true"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  process->Signal(SIGKILL);
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
}

TEST(ProcessTest, RefusesAProgramThatDoesNotExist) {
  EXPECT_THAT(Process::Start({"/nonexistent/program"}),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/program")));
  EXPECT_THAT(Process::Start({}), HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("argv")));
}

TEST(ProcessTest, ReadsMoreThanAPipeHolds) {
  const auto process = Shell("head -c 3000000 /dev/zero");
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), std::string(3000000, '\0'));
}

TEST(ProcessTest, GivesUpWaitingWithTheOutputSoFar) {
  const auto process = Shell("echo stuck here; sleep 1000");
  ASSERT_THAT(process->WaitForOutput("stuck"), IsOk());
  EXPECT_THAT(process->Wait(kMoment),
              HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("stuck here")));
}

TEST(ProcessTest, GivesUpOnAProcessThatNeverStopsWriting) {
  const auto process = Launch({"yes"});
  ASSERT_THAT(process->WaitForOutput("y"), IsOk());
  EXPECT_THAT(process->Wait(kMoment), HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("y")));
}

TEST(ProcessTest, EndsWithTheProcessThoughItsChildHoldsThePipe) {
  const auto process = Shell("sleep 1000 & echo done");
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "done\n");
}

TEST(WaitForOutputTest, GivesTheFirstGroup) {
  const auto process = Shell("echo noise; echo 'listening on 127.0.0.1:7070, job x'; sleep 1000");
  EXPECT_THAT(process->WaitForOutput("listening on [0-9.]+:([0-9]+)"), IsOkAndHolds("7070"));
}

TEST(WaitForOutputTest, GivesTheLineIfThereIsNoGroup) {
  const auto process = Shell("echo step 1; echo step 2 >&2; sleep 1000");
  EXPECT_THAT(process->WaitForOutput(" 2$"), IsOkAndHolds("step 2"));
}

TEST(WaitForOutputTest, FindsWhatEarlierWaitsHaveRead) {
  const auto process = Shell("echo one; echo two");
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_THAT(process->WaitForOutput("two"), IsOkAndHolds("two"));
  EXPECT_THAT(process->WaitForOutput("one"), IsOkAndHolds("one"));
}

TEST(WaitForOutputTest, WaitsUntilTheLineIsWhole) {
  const auto process = Shell("printf 'port 70'; read x </dev/null; printf '70\\n'; sleep 1000");
  EXPECT_THAT(process->WaitForOutput("port ([0-9]+)"), IsOkAndHolds("7070"));
}

TEST(WaitForOutputTest, TakesALastLineWithoutLineFeed) {
  const auto process = Shell("printf bye");
  EXPECT_THAT(process->WaitForOutput("bye"), IsOkAndHolds("bye"));
}

TEST(WaitForOutputTest, TellsThatTheProcessEndedWithoutIt) {
  const auto process = Shell("echo no such flag; exit 2");
  EXPECT_THAT(
      process->WaitForOutput("ready"),
      HasCode(absl::StatusCode::kFailedPrecondition,
              AllOf(HasSubstr("ended with 2"), HasSubstr("\"ready\""), HasSubstr("no such flag"))));
}

TEST(WaitForOutputTest, GivesUpAfterItsLimit) {
  const auto process = Shell("printf unfinished; sleep 1000");
  EXPECT_THAT(process->WaitForOutput("unfinished", kMoment),
              HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("unfinished")));
}

TEST(WaitForOutputTest, RefusesABrokenRegex) {
  EXPECT_THAT(Launch({"true"})->WaitForOutput("("),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("(")));
}

TEST(ProcessDestructorTest, LeavesNothingRunning) {
  auto process = Shell("trap '' TERM HUP; sleep 1000 & echo child $!; sleep 1000");
  const auto child = process->WaitForOutput("child ([0-9]+)");
  ASSERT_THAT(child, IsOk());
  EXPECT_TRUE(Runs(*child));
  const std::string pid = absl::StrCat(process->pid());
  process.reset();
  EXPECT_FALSE(Runs(*child));
  EXPECT_FALSE(Runs(pid));
}

TEST(ProcessDestructorTest, KillsChildrenInProcessGroupsOfTheirOwn) {
  auto process = Launch({"bash", "-c", "set -m; sleep 1000 & echo child $!"});
  const auto child = process->WaitForOutput("child ([0-9]+)");
  ASSERT_THAT(child, IsOk());
  pid_t pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*child, &pid));
  EXPECT_EQ(getpgid(pid), pid);
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_TRUE(Runs(*child));
  process.reset();
  EXPECT_FALSE(Runs(*child));
}

TEST(ProcessDestructorTest, ReapsTheProcess) {
  auto process = Launch({"true"});
  const pid_t pid = process->pid();
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(kill(pid, 0), 0) << "the number must stay its own while it may be signalled";
  process.reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(RunfilePathTest, FindsADataFileOfTheTest) {
  EXPECT_TRUE(std::ifstream(RunfilePath("tests/testing/process/process_test")).good());
}

}  // namespace
}  // namespace sluice

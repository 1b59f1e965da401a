#include "common/launch/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/launch/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "was told that it is the first";
constexpr char kAgain[] = "was told that it runs again";
constexpr int kPatienceMs = 30'000;

std::unique_ptr<Process> Supervised(const Words& flags) {
  Words words = {RunfilePath("tests/common/launch/supervised_program")};
  words.insert(words.end(), flags.begin(), flags.end());
  return Start(words);
}

TEST(SupervisorTest, AProgramThatEndsWellRunsOnce) {
  const auto process = Supervised({"--max-restarts=5"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
}

TEST(SupervisorTest, OneThatIsKilledRunsAgainAndIsToldSo) {
  const auto process = Supervised({"--max-restarts=5", "--once", absl::StrCat("--die=", SIGKILL)});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0)) << process->output();
  EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst, kAgain));
  EXPECT_THAT(process->output(),
              HasSubstr("rank 7: its program was ended by signal 9 (Killed); restart 1 of 5"));
}

TEST(SupervisorTest, OneThatFailsRunsAgain) {
  const auto process = Supervised({"--max-restarts=1", "--once", "--exit=1"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0)) << process->output();
  EXPECT_THAT(process->output(), HasSubstr("failed with exit code 1; restart 1 of 1"));
}

TEST(SupervisorTest, ButNotMoreOftenThanItMay) {
  const auto process = Supervised({"--max-restarts=2", absl::StrCat("--die=", SIGABRT)});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(128 + SIGABRT));
  EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst, kAgain, kAgain));
  EXPECT_THAT(process->output(), HasSubstr("it is not started again, after 2 restarts"));
}

TEST(SupervisorTest, OneThatSaysThatTheJobIsOverEndsWell) {
  for (const std::string& end : {absl::StrCat("--exit=1"), absl::StrCat("--die=", SIGKILL)}) {
    const auto process = Supervised({"--max-restarts=5", "--over", end});
    EXPECT_THAT(process->Wait(), IsOkAndHolds(0)) << process->output();
    EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
  }
}

TEST(SupervisorTest, OneWhoseCodeIsFinalRunsOnce) {
  const auto process = Supervised({"--max-restarts=5", "--exit=2"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
}

TEST(SupervisorTest, ASignalThatAsksItToEndIsPassedOnAndIsTheEnd) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto process = Supervised({"--max-restarts=5", "--wait"});
    ASSERT_THAT(process->WaitForOutput("waits as process"), IsOk());
    process->Signal(signal);
    EXPECT_THAT(process->Wait(), IsOkAndHolds(128 + signal));
    EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
  }
}

// The pause is longer than any test waits.
TEST(SupervisorTest, ASignalDuringThePauseAfterAShortRunIsTheEnd) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto process = Supervised({"--max-restarts=5", "--pause=3600", "--exit=1"});
    ASSERT_THAT(process->WaitForOutput("restart 1 of 5"), IsOk());
    process->Signal(signal);
    EXPECT_THAT(process->Wait(), IsOkAndHolds(1));
    EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
  }
}

TEST(SupervisorTest, OneThatIsItselfAskedToEndRunsOnce) {
  const auto process = Supervised({"--max-restarts=5", absl::StrCat("--die=", SIGTERM)});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(128 + SIGTERM));
  EXPECT_THAT(LinesWith(process->output(), "was told"), ElementsAre(kFirst));
}

TEST(SupervisorTest, TheProgramDiesWithItsSupervisor) {
  const auto process = Supervised({"--max-restarts=5", "--wait"});
  const auto text = process->WaitForOutput("waits as process ([0-9]+)");
  ASSERT_THAT(text, IsOk());
  pid_t pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*text, &pid));
  const FileDescriptor program(OpenPidfd(pid));
  ASSERT_TRUE(program.ok());
  process->Signal(SIGKILL);
  pollfd ended = {program.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, kPatienceMs), 1);
}

TEST(SupervisorTest, OnlyTheProgramItselfInheritsTheSocket) {
  const auto process = Supervised({});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_THAT(process->output(), Not(HasSubstr("could inherit twice")));
}

}  // namespace
}  // namespace sluice

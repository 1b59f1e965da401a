// Jobs launched by mpirun with --max-restarts: what is killed comes back, takes its old place, and
// changes nothing of what is trained.

#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 400;
constexpr uint64_t kStepsBetweenKills = 40;

Words Train(const Words& flags) {
  Words words = {RunfilePath("worker/sluice_train"),
                 "--model=mlp",
                 absl::StrCat("--max-steps=", kSteps),
                 "--batch-size=16",
                 "--momentum=0.9",
                 "--reduction-order=rank",
                 "--progress=off",
                 "--no-test"};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

// Workers without LibTorch, which takes a second to load. Their steps take as long as training.
Words Push(const Words& flags) {
  return With({RunfilePath("tests/testing/process/pushing_worker_program"), "--gradient=1",
               absl::StrCat("--steps=", kSteps), "--elements=1000", "--batch-time=0.02"},
              flags);
}

const Words kJournal = {"--durability=journal", "--checkpoint-every=100"};

// A job of one or several servers and two workers that outlives their ends.
class RestartedJob {
 public:
  explicit RestartedJob(const std::string& name, const Words& flags = kJournal, int servers = 1,
                        const Words& program = Train({})) {
    const Words restarts = {"--max-restarts=20", "--lease=60", absl::StrCat("--servers=", servers),
                            absl::StrCat("--checkpoint-dir=", ::testing::TempDir(), name)};
    process_ = Mpirun({{servers + 2, With(With(program, restarts), flags)}});
    const auto address = process_->WaitForOutput("listening on ([^ ,]+)");
    EXPECT_THAT(address, IsOk());
    address_ = address.value_or("");
  }

  Process& process() { return *process_; }

  // Whoever serves meanwhile.
  void WaitForStep(uint64_t step) const {
    const absl::Time end = absl::Now() + Process::kPatience;
    auto now = StepOf(address_);
    while ((!now.ok() || *now < step) && absl::Now() < end) now = StepOf(address_);
    ASSERT_THAT(now, IsOk());
    ASSERT_GE(*now, step);
  }

  // Kills run `run` of a rank's program, and waits for the next.
  void Kill(int rank, int run) {
    const auto pid = process_->WaitForOutput(RunLine(rank, run));
    ASSERT_THAT(pid, IsOk());
    ASSERT_EQ(kill(std::stoi(*pid), SIGKILL), 0);
    ASSERT_THAT(process_->WaitForOutput(RunLine(rank, run + 1)), IsOk());
  }

 private:
  static std::string RunLine(int rank, int run) {
    return absl::StrCat("rank ", rank, ": run ", run, " of its program is process ([0-9]+)");
  }

  std::unique_ptr<Process> process_;
  std::string address_;
};

std::string Crc(const Process& job) { return ClosingRows(job.output())["parameters' CRC-32"]; }

// Of the same job, undisturbed; run once.
const std::string& CrcWithoutKills() {
  static const auto* const crc = [] {
    const auto job = Mpirun({{3, Train({})}});
    EXPECT_THAT(job->Wait(), IsOkAndHolds(0)) << job->output();
    return new std::string(Crc(*job));
  }();
  return *crc;
}

TEST(LaunchRestartsTest, KilledProgramsOfEveryRankComeBackAndTrainTheSameBits) {
  RestartedJob job("every_rank");
  for (int kill = 0; kill < 5; ++kill) {
    job.WaitForStep(kStepsBetweenKills * (kill + 1));
    if (HasFatalFailure()) return;
    job.Kill(kill % 3, 1 + kill / 3);
  }
  ASSERT_THAT(job.process().Wait(absl::Minutes(2)), IsOkAndHolds(0)) << job.process().output();
  EXPECT_EQ(Crc(job.process()), CrcWithoutKills()) << job.process().output();
  EXPECT_THAT(Counters(job.process().output()), Not(HasSubstr("unbalanced")));
}

TEST(LaunchRestartsTest, AServerOnTcpComesBackWithTheCredentialsOfTheLaunch) {
  RestartedJob job("tcp", With(kJournal, {"--listen=127.0.0.1:0"}), 1, Push({}));
  ASSERT_THAT(job.process().WaitForOutput("listening on .*with mutual TLS"), IsOk());
  ASSERT_THAT(job.process().WaitForOutput("saved .*checkpoint"), IsOk());
  job.Kill(0, 1);
  ASSERT_THAT(job.process().Wait(absl::Minutes(2)), IsOkAndHolds(0)) << job.process().output();
  EXPECT_THAT(LinesWith(job.process().output(), "parameters at step 400: -400 to -400"), SizeIs(2))
      << job.process().output();
}

TEST(LaunchRestartsTest, KilledProgramsOfSeveralServersWithJournalsTrainTheSameBits) {
  RestartedJob job("several_journals", kJournal, 3);
  for (int rank = 0; rank < 5; ++rank) {
    job.WaitForStep(kStepsBetweenKills * (rank + 1));
    if (HasFatalFailure()) return;
    job.Kill(rank, 1);
  }
  ASSERT_THAT(job.process().Wait(absl::Minutes(2)), IsOkAndHolds(0)) << job.process().output();
  EXPECT_EQ(Crc(job.process()), CrcWithoutKills()) << job.process().output();
  EXPECT_THAT(Counters(job.process().output()), Not(HasSubstr("unbalanced")));
}

// The rows of both factors are tables; the vector has one element, so two servers have none of it.
TEST(LaunchRestartsTest, KilledServersOfTablesTrainTheSameRows) {
  const Words program = {RunfilePath("worker/sluice_train"),
                         "--model=matrix-factorization",
                         "--optimizer=adagrad",
                         "--learning-rate=0.5",
                         absl::StrCat("--max-steps=", kSteps),
                         "--batch-size=1024",
                         "--progress=off"};
  const auto undisturbed = Mpirun({{3, program}});
  ASSERT_THAT(undisturbed->Wait(absl::Minutes(2)), IsOkAndHolds(0)) << undisturbed->output();
  RestartedJob job("tables", kJournal, 3, program);
  for (const int rank : {1, 0, 2}) {
    job.WaitForStep(kStepsBetweenKills * (rank + 1));
    if (HasFatalFailure()) return;
    job.Kill(rank, 1);
  }
  ASSERT_THAT(job.process().Wait(absl::Minutes(2)), IsOkAndHolds(0)) << job.process().output();
  const auto losses = [](const Process& of) {
    std::vector<std::string> lines = LinesWith(of.output(), "test loss");
    const auto in_log = [](const std::string& line) {
      return absl::StrContains(line, "] training");
    };
    lines.erase(std::remove_if(lines.begin(), lines.end(), in_log), lines.end());
    return lines;
  };
  EXPECT_THAT(losses(job.process()), SizeIs(2));  // at the end, and in the closing table
  EXPECT_EQ(losses(job.process()), losses(*undisturbed));
  EXPECT_EQ(Crc(job.process()), Crc(*undisturbed));
}

// Steps since the last checkpoint are lost, and so are their batches.
TEST(LaunchRestartsTest, KilledProgramsOfSeveralServersOnTcpComeBackAndTrainingEnds) {
  RestartedJob job("several", {"--checkpoint-every=20", "--listen=127.0.0.1:0"}, 3, Push({}));
  for (const int rank : {1, 0, 2, 3}) {
    ASSERT_THAT(job.process().WaitForOutput("saved .*checkpoint"), IsOk());
    job.Kill(rank, 1);
    if (HasFatalFailure()) return;
  }
  ASSERT_THAT(job.process().Wait(absl::Minutes(2)), IsOkAndHolds(0)) << job.process().output();
  EXPECT_THAT(Counters(job.process().output()), Not(HasSubstr("unbalanced")));
}

TEST(LaunchRestartsTest, AServerThatKeepsNothingIsNotStartedAgain) {
  const auto job = Mpirun({{3, Push({"--max-restarts=20"})}});
  const auto pid = job->WaitForOutput("rank 0: run 1 of its program is process ([0-9]+)");
  ASSERT_THAT(pid, IsOk());
  // The launch is complete then.
  ASSERT_THAT(job->WaitForOutput("without --checkpoint-dir it has nothing"), IsOk());
  ASSERT_EQ(kill(std::stoi(*pid), SIGKILL), 0);
  EXPECT_THAT(job->Wait(), IsOkAndHolds(Not(0)));
  EXPECT_THAT(LinesWith(job->output(), "rank 0: run"), SizeIs(1)) << job->output();
}

// A job whose third rank is back when the server has ended with 0.
class LateReturn {
 public:
  explicit LateReturn(const Words& flags) {
    job_ = Mpirun({{3, Push(With({"--max-restarts=1", "--lease=1"}, flags))}});
    server_ = Pid("([0-9]+) supervisor[.]cc.*rank 0: run 1 ");
    supervisor_ = Pid("([0-9]+) supervisor[.]cc.*rank 2: run 1 ");
    program_ = Pid("rank 2: run 1 of its program is process ([0-9]+)");
    const auto address = job_->WaitForOutput("listening on ([^ ,]+)");
    EXPECT_THAT(address, IsOk());
    EXPECT_THAT(WaitForAccepted(address.value_or(""), 10), IsOk());  // training has begun
  }

  pid_t supervisor() const { return supervisor_; }
  pid_t program() const { return program_; }
  pid_t Pid(const std::string& regex) const {
    const auto pid = job_->WaitForOutput(regex);
    EXPECT_THAT(pid, IsOk());
    return std::stoi(pid.value_or("0"));
  }

  // Until then the process is stopped.
  void ContinueAfterTheEnd(pid_t stopped) const {
    const absl::Time end = absl::Now() + Process::kPatience;
    job_->WaitForOutput("parameters' CRC-32").IgnoreError();
    while (kill(server_, 0) == 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_NE(kill(server_, 0), 0);
    EXPECT_EQ(kill(stopped, SIGCONT), 0);
  }

  void ExpectEndsWell() const {
    EXPECT_THAT(job_->Wait(), IsOkAndHolds(0)) << job_->output();
    EXPECT_THAT(LinesWith(job_->output(), "rank 2: run"), SizeIs(2)) << job_->output();
    EXPECT_THAT(LinesWith(job_->output(), "training is over: the server of this launch has ended"),
                SizeIs(1))
        << job_->output();
  }

 private:
  std::unique_ptr<Process> job_;
  pid_t server_ = 0;
  pid_t supervisor_ = 0;
  pid_t program_ = 0;
};

TEST(LaunchRestartsTest, AWorkerThatIsStartedAgainAfterTheEndEndsWell) {
  for (const Words& flags : {Words(), Words({"--listen=127.0.0.1:0", "--insecure"})}) {
    const LateReturn job(flags);
    ASSERT_EQ(kill(job.supervisor(), SIGSTOP), 0);
    ASSERT_EQ(kill(job.program(), SIGKILL), 0);
    job.ContinueAfterTheEnd(job.supervisor());
    job.ExpectEndsWell();
  }
}

TEST(LaunchRestartsTest, AWorkerThatIsStartedAgainAndConnectsAfterTheEndEndsWell) {
  const LateReturn job({});
  ASSERT_EQ(kill(job.program(), SIGKILL), 0);
  const pid_t again = job.Pid("rank 2: run 2 of its program is process ([0-9]+)");
  ASSERT_EQ(kill(again, SIGSTOP), 0);
  job.ContinueAfterTheEnd(again);
  job.ExpectEndsWell();
}

TEST(LaunchRestartsTest, BadUsageEndsTheJobAtOnce) {
  const auto job = Mpirun({{2, Push({"--max-restarts=20", "--push-encoding=nonsense"})}});
  EXPECT_THAT(job->Wait(), IsOkAndHolds(2)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "pushing_worker_program: --push-encoding"), SizeIs(1))
      << job->output();
}

TEST(LaunchRestartsTest, AServerThatCannotListenEndsTheJobAndSaysWhy) {
  const auto job = Mpirun({{2, Push({"--max-restarts=20", "--listen=192.0.2.1:7070"})}});
  EXPECT_THAT(job->Wait(), IsOkAndHolds(3)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "cannot listen on 192.0.2.1:7070"), SizeIs(1))
      << job->output();
  EXPECT_THAT(LinesWith(job->output(), "rank 0: run"), SizeIs(1)) << job->output();
}

TEST(LaunchRestartsTest, AreForLaunches) {
  const auto server =
      Start({RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0", "--max-restarts=1"});
  EXPECT_THAT(server->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(server->output(), HasSubstr("--max-restarts is for programs that mpirun launches"));
}

}  // namespace
}  // namespace sluice

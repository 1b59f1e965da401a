// Servers that are killed when training has finished, while a worker evaluates: the end of training
// is on the disk, so those that are started again wait for that worker alone, and end with it.

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 20;
const Words kJournal = {"--durability=journal"};

Words Worker(int gradient, const Words& flags, int steps = kSteps) {
  return With({RunfilePath("tests/testing/process/pushing_worker_program"), "--elements=64",
               absl::StrCat("--steps=", steps), absl::StrCat("--gradient=", gradient)},
              flags);
}

// A job that is started by hand, and whose second worker evaluates.
class JobByHand {
 public:
  JobByHand(int servers, const Words& flags) : flags_(flags) {
    for (int i = 0; i < servers; ++i) addresses_.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    for (int i = 0; i < servers; ++i) std::filesystem::remove_all(DirectoryOf(i));
    for (int i = 0; i < servers; ++i) StartServer(i);
    const Words flag = {"--server=" + addresses_[0]};
    quick_ = Start(Worker(1, With(flag, {"--name=quick"})));
    evaluates_ = Start(Worker(3, With(flag, {"--name=evaluates", "--evaluate"})));
    EXPECT_THAT(evaluates_->WaitForOutput("training has ended"), IsOk());
    EXPECT_THAT(quick_->Wait(kJob), IsOkAndHolds(0)) << quick_->output();
  }

  void StartServer(int index) {
    Words words = {"--workers=2", "--lease=10", "--checkpoint-dir=" + DirectoryOf(index)};
    if (addresses_.size() == 1) {
      words.push_back("--listen=" + addresses_[0]);
    } else {
      words.push_back("--servers=" + absl::StrJoin(addresses_, ","));
      words.push_back(absl::StrCat("--index=", index));
    }
    servers_.resize(addresses_.size());
    servers_[index] = Start(ServerProgram(With(words, flags_)));
    EXPECT_THAT(servers_[index]->WaitForOutput("listening on"), IsOk());
  }
  void Kill(int index) {
    servers_[index]->Signal(SIGKILL);
    ASSERT_THAT(servers_[index]->Wait(), IsOkAndHolds(-SIGKILL));
  }

  // Until all servers are there again.
  void AwaitAll() {
    for (size_t i = 1; i < servers_.size(); ++i) {
      EXPECT_THAT(servers_[i]->WaitForOutput("loaded this server's part"), IsOk());
    }
  }

  void ExpectEndsWellAfterEvaluation() {
    evaluates_->Signal(SIGTERM);
    EXPECT_THAT(evaluates_->Wait(kJob), IsOkAndHolds(0)) << evaluates_->output();
    for (const auto& server : servers_) {
      EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(0)) << server->output();
    }
    EXPECT_EQ(ClosingRows(servers_[0]->output()).count("test accuracy"), 1u)
        << servers_[0]->output();
  }

  const std::vector<std::unique_ptr<Process>>& servers() const { return servers_; }
  Process& evaluates() { return *evaluates_; }

 private:
  static std::string DirectoryOf(int index) { return TestPath(absl::StrCat("run", index)); }

  const Words flags_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Process>> servers_;
  std::unique_ptr<Process> quick_;
  std::unique_ptr<Process> evaluates_;
};

TEST(KillFinishedServerTest, OneServerEndsWellInEveryMode) {
  for (const std::string mode : {"sync", "backup", "async"}) {
    for (const Words& durability : {Words(), kJournal}) {
      SCOPED_TRACE(mode + (durability.empty() ? "" : " with a journal"));
      JobByHand job(1, With({"--mode=" + mode}, durability));
      for (int kills = 0; kills < 2; ++kills) {
        job.Kill(0);
        job.StartServer(0);
      }
      job.ExpectEndsWellAfterEvaluation();
      EXPECT_THAT(job.servers()[0]->output(), HasSubstr("training had ended"));
    }
  }
}

TEST(KillFinishedServerTest, SeveralServersEndWellWhicheverWasKilled) {
  for (const std::vector<int>& killed : std::vector<std::vector<int>>{{0}, {1}, {0, 1, 2}}) {
    for (const Words& durability : {Words(), kJournal}) {
      SCOPED_TRACE(absl::StrCat(killed.size(), " from ", killed[0]));
      JobByHand job(3, durability);
      for (const int index : killed) job.Kill(index);
      for (const int index : killed) job.StartServer(index);
      job.AwaitAll();
      job.ExpectEndsWellAfterEvaluation();
    }
  }
}

TEST(KillFinishedServerTest, WorkersOfAServerThatStaysAwayWaitForTheConnectTimeout) {
  Standalone server({"--workers=1"});
  const auto worker = Start(Worker(1, {server.flag(), "--evaluate", "--connect-timeout=2"}));
  ASSERT_THAT(worker->WaitForOutput("training has ended"), IsOk());
  server.process().Signal(SIGKILL);
  ASSERT_THAT(server.process().Wait(), IsOkAndHolds(-SIGKILL));
  worker->Signal(SIGTERM);
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(3));
  EXPECT_THAT(worker->output(), HasSubstr("it did not come back within 2s"));
}

TEST(KillFinishedServerTest, ANewJobGoesOnInTheDirectoryOfOneThatHasEnded) {
  const std::string directory = "--checkpoint-dir=" + TestPath("again");
  for (const int steps : {kSteps, 2 * kSteps}) {
    Standalone server({"--workers=1", directory});
    const auto worker = Start(Worker(1, {server.flag()}, steps));
    EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(worker->output(),
                HasSubstr(absl::StrCat("parameters at step ", steps, ": -", steps)));
    EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0)) << server.process().output();
  }
}

// ---- Under mpirun ----

std::string RunLine(int rank, int run) {
  return absl::StrCat("rank ", rank, ": run ", run, " of its program is process ([0-9]+)");
}

void SignalRun(Process& job, int rank, int run, int signal) {
  const auto pid = job.WaitForOutput(RunLine(rank, run));
  ASSERT_THAT(pid, IsOk());
  ASSERT_EQ(kill(std::stoi(*pid), signal), 0);
}

TEST(KillFinishedServerTest, UnderMpirunTheJobEndsWell) {
  for (const int servers : {1, 2}) {
    const auto job =
        Mpirun({{servers + 1,
                 Worker(1, {"--evaluate", "--max-restarts=3", absl::StrCat("--servers=", servers),
                            absl::StrCat("--checkpoint-dir=", TestPath("mpirun"), servers)})}});
    ASSERT_THAT(job->WaitForOutput("training has ended"), IsOk());
    SignalRun(*job, 0, 1, SIGKILL);
    ASSERT_THAT(job->WaitForOutput(RunLine(0, 2)), IsOk());
    SignalRun(*job, servers, 1, SIGTERM);
    EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
    EXPECT_EQ(ClosingRows(job->output()).count("test accuracy"), 1u) << job->output();
  }
}

// Whether the launch was complete when the server was killed.
bool WasKilledTooLate(const std::string& output) {
  return output.find("it has nothing to continue from") < output.find("was ended by signal 9");
}

TEST(KillFinishedServerTest, AServerThatIsKilledBeforeTheLaunchIsCompleteIsStartedAgain) {
  const Words flags = {"--max-restarts=3", "--batch-time=0.1"};  // so that the job is not over
  for (const Words& directory : {Words(), Words({"--checkpoint-dir=" + TestPath("launch")})}) {
    std::unique_ptr<Process> job;
    do {
      job = Mpirun({{2, Worker(1, With(flags, directory))}});
      SignalRun(*job, 0, 1, SIGKILL);
      ASSERT_THAT(job->WaitForOutput("was ended by signal 9"), IsOk());
    } while (WasKilledTooLate(job->output()));
    EXPECT_THAT(job->WaitForOutput(RunLine(0, 2)), IsOk());
    EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  }
}

// ---- Workers that are lost before training has begun ----

TEST(KillFinishedServerTest, AServerWhoseWorkersAreAllLostBeforeTheLastCameEndsWithThree) {
  Standalone server({"--workers=3", "--lease=4"});
  std::vector<std::unique_ptr<Process>> workers;
  for (const std::string name : {"one", "two"}) {
    workers.push_back(Start(Worker(1, {server.flag(), "--name=" + name})));
    ASSERT_THAT(workers.back()->WaitForOutput("joined at step 0"), IsOk());
  }
  for (const auto& worker : workers) worker->Signal(SIGKILL);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(3)) << server.process().output();
  EXPECT_THAT(server.process().output(), HasSubstr("every worker was lost"));
}

TEST(KillFinishedServerTest, AServerThatWaitsForAWorkerThatNeverCameSaysSo) {
  Standalone server({"--workers=2", "--mode=async", "--log-step-wait=1"});
  const auto worker = Start(Worker(1, {server.flag()}));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0)) << worker->output();
  EXPECT_THAT(server.process().WaitForOutput("step 20 has waited 1.* for 1 worker still to join"),
              IsOk());
}

}  // namespace
}  // namespace sluice

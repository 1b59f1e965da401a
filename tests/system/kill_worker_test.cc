// A worker that is killed, or fails, leaves no trace, and stops nobody.
//
// Workers 1, 2 and 3 push gradients of 1, 3 and 8 from parameters 0 with learning rate 1: a step of
// all three subtracts 4, one of the first two subtracts 2. The third stops at step 2 of 6, so the
// parameters end at −(2 · 4 + 4 · 2).

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFinal[] = "parameters at step 6: -16 to -16";

Words Server(const Words& flags) {
  Words words = {RunfilePath("server/sluice_server"), "--lease=4"};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

Words Worker(const absl::AlphaNum& gradient, const Words& flags) {
  Words words = {RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=6",
                 absl::StrCat("--gradient=", gradient)};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

// The job under mpirun, with a third worker that stops in a certain way.
std::unique_ptr<Process> MpirunWithDyingWorker(const Words& death) {
  return Mpirun({{1, Server({})}, {1, Worker(1, {})}, {1, Worker(3, {})}, {1, Worker(8, death)}},
                RankDeath::kIsRecovered);
}

// The job without MPI; its third worker waits at step 2 to be killed.
class StandaloneJob {
 public:
  explicit StandaloneJob(const Words& stop, const Words& of_server = {}) {
    Words words = {"--listen=127.0.0.1:0", "--workers=3"};
    words.insert(words.end(), of_server.begin(), of_server.end());
    server_ = Start(Server(words));
    const auto port = server_->WaitForOutput("listening on 127.0.0.1:([0-9]+)");
    EXPECT_THAT(port, IsOk());
    const std::string address = absl::StrCat("--server=127.0.0.1:", port.value_or("0"));
    first_ = Start(Worker(1, {address}));
    second_ = Start(Worker(3, {address}));
    Words flags = stop;
    flags.push_back(address);
    third_ = Start(Worker(8, flags));
  }

  void KillThirdWorker() {
    EXPECT_THAT(third_->WaitForOutput("stopped at step 2"), IsOk());
    third_->Signal(SIGKILL);
    EXPECT_THAT(third_->Wait(), IsOkAndHolds(-SIGKILL));
  }

  Process& server() { return *server_; }
  Process& first() { return *first_; }
  Process& second() { return *second_; }
  Process& third() { return *third_; }

 private:
  std::unique_ptr<Process> server_, first_, second_, third_;
};

TEST(KillWorkerUnderMpirunTest, InTheMiddleOfAPushNothingOfItCountsAndTheOthersFinish) {
  const auto job = MpirunWithDyingWorker({"--stop-at-step=2", "--in-push", "--die"});
  ASSERT_THAT(job->Wait(), IsOk());
  EXPECT_THAT(LinesWith(job->output(), "parameters at"), ElementsAre(kFinal, kFinal));
  EXPECT_EQ(Counters(job->output()), "6 steps, 15 received: 14 accepted, 1 aborted")
      << job->output();
}

TEST(KillWorkerUnderMpirunTest, BetweenPushesTheOthersFinish) {
  const auto job = MpirunWithDyingWorker({"--stop-at-step=2", "--die"});
  ASSERT_THAT(job->Wait(), IsOk());
  EXPECT_THAT(LinesWith(job->output(), "parameters at"), ElementsAre(kFinal, kFinal));
  EXPECT_EQ(Counters(job->output()), "6 steps, 14 received: 14 accepted") << job->output();
}

TEST(KillWorkerUnderMpirunTest, WithoutRecoveryTheWholeJobEnds) {
  const auto job = Mpirun({{1, Server({})},
                           {1, Worker(1, {})},
                           {1, Worker(3, {})},
                           {1, Worker(8, {"--stop-at-step=2", "--in-push", "--die"})}});
  EXPECT_THAT(job->Wait(), IsOkAndHolds(::testing::Ne(0))) << job->output();
}

TEST(KillStandaloneWorkerTest, InTheMiddleOfAPushNothingOfItCountsAndTheOthersFinish) {
  StandaloneJob job({"--stop-at-step=2", "--in-push"});
  job.KillThirdWorker();
  for (Process* worker : {&job.first(), &job.second()}) {
    EXPECT_THAT(worker->Wait(), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"), ElementsAre(kFinal));
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_EQ(Counters(job.server().output()), "6 steps, 15 received: 14 accepted, 1 aborted");
}

TEST(KillStandaloneWorkerTest, BetweenPushesTheOthersFinish) {
  StandaloneJob job({"--stop-at-step=2"});
  job.KillThirdWorker();
  for (Process* worker : {&job.first(), &job.second()}) {
    EXPECT_THAT(worker->Wait(), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"), ElementsAre(kFinal));
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_EQ(Counters(job.server().output()), "6 steps, 14 received: 14 accepted");
}

TEST(KillStandaloneWorkerTest, TheOnlyOneEndsTheServerWhichSaysSo) {
  const auto server = Start(Server({"--listen=127.0.0.1:0", "--workers=1"}));
  const auto port = server->WaitForOutput("listening on 127.0.0.1:([0-9]+)");
  ASSERT_THAT(port, IsOk());
  const auto worker =
      Start(Worker(4, {"--stop-at-step=2", absl::StrCat("--server=127.0.0.1:", *port)}));
  ASSERT_THAT(worker->WaitForOutput("stopped at step 2"), IsOk());
  worker->Signal(SIGKILL);
  EXPECT_THAT(server->Wait(), IsOkAndHolds(3));
  EXPECT_THAT(server->WaitForOutput("every worker was lost"), IsOk());
  EXPECT_EQ(Counters(server->output()), "2 steps, 2 received: 2 accepted");
}

// A server with a worker of its own that ends at step 2.
class LoneWorker {
 public:
  explicit LoneWorker(const Words& end, const Words& flags = {}, const char* gradient = "4") {
    Words words = {"--listen=127.0.0.1:0", "--workers=1"};
    words.insert(words.end(), flags.begin(), flags.end());
    server_ = Start(Server(words));
    const auto port = server_->WaitForOutput("listening on 127.0.0.1:([0-9]+)");
    EXPECT_THAT(port, IsOk());
    address_ = absl::StrCat("--server=127.0.0.1:", port.value_or("0"));
    Words of_worker = {address_, "--name=w"};
    of_worker.insert(of_worker.end(), end.begin(), end.end());
    worker_ = Start(Worker(gradient, of_worker));
  }

  Process& server() { return *server_; }
  Process& worker() { return *worker_; }
  const std::string& address() const { return address_; }

 private:
  std::string address_;
  std::unique_ptr<Process> server_, worker_;
};

TEST(FailingWorkerTest, IsLostAtOnceAndTheOthersFinish) {
  StandaloneJob job({"--stop-at-step=2", "--exit=1"}, {"--lease=600"});
  EXPECT_THAT(job.third().Wait(), IsOkAndHolds(1));
  for (Process* worker : {&job.first(), &job.second()}) {
    EXPECT_THAT(worker->Wait(), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"), ElementsAre(kFinal));
  }
  EXPECT_THAT(job.server().WaitForOutput("at step 2 a worker was lost: .*exit code 1"), IsOk());
  job.server().Signal(SIGTERM);  // for one lease it would be expected to come back
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
}

TEST(FailingWorkerTest, TheOnlyOneEndsTheServerWithTheCodeOfLostWorkers) {
  LoneWorker job({"--stop-at-step=2", "--exit=7"});
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(3));
  EXPECT_THAT(job.server().WaitForOutput("every worker was lost: \"w\" .*exit code 7"), IsOk());
}

TEST(FailingWorkerTest, OneThatEndsWith0HasLeft) {
  LoneWorker job({"--stop-at-step=2", "--exit=0"}, {"--lease=600"});
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_EQ(Counters(job.server().output()), "2 steps, 2 received: 2 accepted");
}

TEST(FailingWorkerTest, GradientsThatAreNotFiniteEndTheServerWithACodeOfItsOwn) {
  LoneWorker job({}, {}, "nan");
  EXPECT_THAT(job.worker().Wait(), IsOkAndHolds(2));
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(8));
  EXPECT_THAT(job.server().WaitForOutput("gradients that were not finite were refused"), IsOk());
}

// ---- Names ----

TEST(NameTest, OfAProcessThatRunsIsRefusedToAnother) {
  LoneWorker job({"--stop-at-step=2"});
  ASSERT_THAT(job.worker().WaitForOutput("stopped at step 2"), IsOk());
  const auto second = Start(Worker(4, {job.address(), "--name=w"}));
  EXPECT_THAT(second->Wait(), IsOkAndHolds(1));
  EXPECT_THAT(
      second->WaitForOutput("the name of this process is that of \"w\" .process [0-9]+ on "),
      IsOk())
      << second->output();
}

// As if its machine had died: its stream is open, and the server hears nothing.
TEST(NameTest, OfAProcessThatIsSilentIsWaitedFor) {
  LoneWorker job({"--stop-at-step=2"}, {"--lease=12"});
  ASSERT_THAT(job.worker().WaitForOutput("stopped at step 2"), IsOk());
  job.worker().Signal(SIGSTOP);
  const auto second = Start(Worker(4, {job.address(), "--name=w"}));
  EXPECT_THAT(second->Wait(), IsOkAndHolds(0)) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("for its name, in case the process that has it"));
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  job.worker().Signal(SIGKILL);
}

TEST(NameTest, OfAProcessThatWasKilledIsTakenOver) {
  LoneWorker job({"--stop-at-step=2"}, {"--lease=600"});
  ASSERT_THAT(job.worker().WaitForOutput("stopped at step 2"), IsOk());
  job.worker().Signal(SIGKILL);
  const auto second = Start(Worker(4, {job.address(), "--name=w"}));
  EXPECT_THAT(second->Wait(), IsOkAndHolds(0)) << second->output();
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
}

}  // namespace
}  // namespace sluice

// A worker that is stopped (SIGSTOP) holds nobody up for longer than its lease, and when it goes on
// (SIGCONT) it finds itself fenced, joins again and catches up; it never corrupts anything.
//
// All gradients are 1 and the learning rate is 1, so each step subtracts 1, whoever contributes.

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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 4;
// For 1500 steps, with sanitizers and on a machine with other work.
constexpr absl::Duration kManySteps = absl::Minutes(2);

// A standalone job of workers w0 to w3 that push until step `steps`.
class StoppableJob {
 public:
  StoppableJob(const Words& mode, uint64_t steps) {
    Words words = {RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0", "--lease=1",
                   absl::StrCat("--workers=", kWorkers)};
    words.insert(words.end(), mode.begin(), mode.end());
    server_ = Start(words);
    const auto address = server_->WaitForOutput("listening on ([^ ]+)");
    EXPECT_THAT(address, IsOk());
    address_ = address.value_or("");
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(Start({RunfilePath("tests/testing/process/pushing_worker_program"),
                                "--gradient=1", absl::StrCat("--steps=", steps),
                                absl::StrCat("--name=w", i), absl::StrCat("--server=", address_)}));
    }
  }

  const std::string& address() const { return address_; }
  Process& server() { return *server_; }
  Process& worker(int i) { return *workers_[i]; }

 private:
  std::unique_ptr<Process> server_;
  std::string address_;
  std::vector<std::unique_ptr<Process>> workers_;
};

TEST(StopWorkerTest, InBackupTheOthersGoOnAtOnceAndItCatchesUp) {
  // The others must not be done before its lease is over: a step takes 2 ms and more.
  StoppableJob job({"--mode=backup", "--quorum=3"}, 1500);
  ASSERT_THAT(WaitForAccepted(job.address(), 30), IsOk());
  job.worker(2).Signal(SIGSTOP);
  ASSERT_THAT(WaitForPresence(job.address(), "w2", "EVICTED"), IsOk());
  job.worker(2).Signal(SIGCONT);
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_THAT(job.worker(i).Wait(kManySteps), IsOkAndHolds(0)) << job.worker(i).output();
    EXPECT_THAT(LinesWith(job.worker(i).output(), "parameters at"),
                ElementsAre("parameters at step 1500: -1500 to -1500"));
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_THAT(Counters(job.server().output()),
              AllOf(HasSubstr("1500 steps"), Not(HasSubstr("unbalanced"))));
}

TEST(StopWorkerTest, InSyncTheOthersWaitForItsLeaseAndSayForWhom) {
  // When it comes back the others must not be done, since the server ends then.
  StoppableJob job({"--mode=sync", "--log-step-wait=0.5"}, 1500);
  ASSERT_THAT(WaitForAccepted(job.address(), 30), IsOk());
  job.worker(1).Signal(SIGSTOP);
  EXPECT_THAT(job.server().WaitForOutput("has waited .* for .*w1 \\(last seen"), IsOk());
  ASSERT_THAT(WaitForPresence(job.address(), "w1", "EVICTED"), IsOk());
  job.worker(1).Signal(SIGCONT);
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_THAT(job.worker(i).Wait(kManySteps), IsOkAndHolds(0)) << job.worker(i).output();
    EXPECT_THAT(LinesWith(job.worker(i).output(), "parameters at"),
                ElementsAre("parameters at step 1500: -1500 to -1500"));
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_THAT(Counters(job.server().output()),
              AllOf(HasSubstr("1500 steps"), Not(HasSubstr("unbalanced"))));
}

TEST(StopWorkerTest, InSspTheOthersWaitForItsLeaseAlone) {
  // As in sync: the others must not be done when it comes back.
  StoppableJob job({"--mode=ssp", "--slack=2"}, 1500);
  ASSERT_THAT(WaitForAccepted(job.address(), 30), IsOk());
  job.worker(3).Signal(SIGSTOP);
  ASSERT_THAT(WaitForPresence(job.address(), "w3", "EVICTED"), IsOk());
  job.worker(3).Signal(SIGCONT);
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_THAT(job.worker(i).Wait(kManySteps), IsOkAndHolds(0)) << job.worker(i).output();
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_THAT(Counters(job.server().output()), Not(HasSubstr("unbalanced")));
}

TEST(StopWorkerTest, AllOfThemAreEvictedAndComeBackBeforeTheJobIsGivenUp) {
  // The first that comes back must not be done before the last does.
  StoppableJob job({"--mode=sync", "--lease=3"}, 1000);
  ASSERT_THAT(WaitForAccepted(job.address(), 30), IsOk());
  for (int i = 0; i < kWorkers; ++i) job.worker(i).Signal(SIGSTOP);
  for (const char* worker : {"w0", "w1", "w2", "w3"}) {
    ASSERT_THAT(WaitForPresence(job.address(), worker, "EVICTED"), IsOk());
  }
  for (int i = 0; i < kWorkers; ++i) job.worker(i).Signal(SIGCONT);
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_THAT(job.worker(i).Wait(kManySteps), IsOkAndHolds(0)) << job.worker(i).output();
    EXPECT_THAT(LinesWith(job.worker(i).output(), "parameters at"),
                ElementsAre("parameters at step 1000: -1000 to -1000"));
  }
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
  EXPECT_THAT(job.server().output(), HasSubstr("of 4 workers were evicted"));
}

TEST(StopWorkerTest, MaxStepWaitLetsSyncProceedBeforeTheLeaseIsOver) {
  StoppableJob job(
      {"--mode=sync", "--lease=600", "--max-step-wait=0.1", "--on-max-step-wait=proceed"}, 30);
  ASSERT_THAT(WaitForAccepted(job.address(), 30), IsOk());
  job.worker(0).Signal(SIGSTOP);
  for (int i = 1; i < kWorkers; ++i) {
    EXPECT_THAT(job.worker(i).Wait(), IsOkAndHolds(0)) << job.worker(i).output();
    EXPECT_THAT(LinesWith(job.worker(i).output(), "parameters at"),
                ElementsAre("parameters at step 30: -30 to -30"));
  }
  job.worker(0).Signal(SIGCONT);
  EXPECT_THAT(job.worker(0).Wait(), IsOkAndHolds(0)) << job.worker(0).output();
  EXPECT_THAT(job.server().Wait(), IsOkAndHolds(0));
}

}  // namespace
}  // namespace sluice

// A server that is stopped (SIGSTOP) for longer than a step may wait goes on (SIGCONT) as if no
// time had passed: it evicts nobody, and no worker notices.
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

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kWorkers = 2;
constexpr absl::Duration kMaxStepWait = absl::Seconds(10);
// For 500 steps, with sanitizers and on a machine with other work.
constexpr absl::Duration kManySteps = absl::Minutes(2);

// Whatever the mode does with those who are too late, nobody was.
class StopServerTest : public ::testing::TestWithParam<Words> {
 protected:
  StopServerTest() {
    Words words = {RunfilePath("server/sluice_server"),
                   "--listen=127.0.0.1:0",
                   "--lease=600",
                   "--log-step-wait=0.2",
                   absl::StrCat("--workers=", kWorkers),
                   absl::StrCat("--max-step-wait=", absl::ToInt64Seconds(kMaxStepWait))};
    words.insert(words.end(), GetParam().begin(), GetParam().end());
    server_ = Start(words);
    address_ = server_->WaitForOutput("listening on ([^ ]+)").value_or("");
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(
          Start({RunfilePath("tests/testing/process/pushing_worker_program"), "--gradient=1",
                 "--steps=500", absl::StrCat("--name=w", i), absl::StrCat("--server=", address_)}));
    }
  }

  std::unique_ptr<Process> server_;
  std::string address_;
  std::vector<std::unique_ptr<Process>> workers_;
};

INSTANTIATE_TEST_SUITE_P(, StopServerTest,
                         ::testing::Values(Words{"--mode=sync", "--on-max-step-wait=evict"},
                                           Words{"--mode=sync", "--on-max-step-wait=proceed"}));

TEST_P(StopServerTest, CountsAgainstNobody) {
  ASSERT_THAT(WaitForAccepted(address_, 30), IsOk());
  workers_[1]->Signal(SIGSTOP);
  ASSERT_THAT(server_->WaitForOutput("has waited .* for w1 \\(last seen"), IsOk());
  server_->Signal(SIGSTOP);
  // It stays stopped for longer than the step may wait.
  ASSERT_THAT(server_->Wait(kMaxStepWait + absl::Seconds(1)),
              HasCode(absl::StatusCode::kDeadlineExceeded, _));
  workers_[1]->Signal(SIGCONT);
  server_->Signal(SIGCONT);
  for (const std::unique_ptr<Process>& worker : workers_) {
    EXPECT_THAT(worker->Wait(kManySteps), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "joins again"), IsEmpty());
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"),
                ElementsAre("parameters at step 500: -500 to -500"));
  }
  EXPECT_THAT(server_->Wait(), IsOkAndHolds(0));
  // No step was applied without one of them.
  EXPECT_EQ(Counters(server_->output()), "500 steps, 1000 received: 1000 accepted");
}

}  // namespace
}  // namespace sluice

// A server that is killed comes back, its workers join it by themselves, and nothing that they were
// told is lost or counted twice.
//
// Workers 1 and 2 push gradients of 1 and 3 from parameters 0 with learning rate 1: each step
// subtracts 2, whatever else happens. SLUICE_KILLS is how often the server is killed; the times
// that it takes to come back are printed.

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/launch.h"
#include "tests/testing/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kStepsPerKill = 20;
// After the last kill, so that no worker has gone by then, however busy the machine.
constexpr uint64_t kLastSteps = 400;

int Kills() {
  const char* const asked = std::getenv("SLUICE_KILLS");
  return asked == nullptr ? 3 : std::atoi(asked);
}

class KillServerTest : public ::testing::TestWithParam<const char*> {
 protected:
  KillServerTest()
      : directory_(absl::StrCat(::testing::TempDir(), "kill_server_", GetParam())),
        address_(absl::StrCat("127.0.0.1:", FreePort())) {}

  // Returns once it answers.
  std::unique_ptr<Process> StartServer() const {
    auto server = Start({RunfilePath("server/sluice_server"), absl::StrCat("--listen=", address_),
                         "--workers=2", absl::StrCat("--checkpoint-dir=", directory_),
                         "--checkpoint-every=7", absl::StrCat("--durability=", GetParam())});
    EXPECT_THAT(server->WaitForOutput("listening on"), IsOk());
    return server;
  }

  std::unique_ptr<Process> StartWorker(int gradient, uint64_t steps) const {
    return Start({RunfilePath("tests/pushing_worker_program"), absl::StrCat("--steps=", steps),
                  absl::StrCat("--gradient=", gradient), absl::StrCat("--server=", address_),
                  absl::StrCat("--name=worker", gradient)});
  }

  // Returns once the server is at that step; expects no error.
  void WaitForStep(uint64_t step) const {
    absl::StatusOr<uint64_t> now = StepOf(address_);
    while (now.ok() && *now < step) now = StepOf(address_);
    EXPECT_THAT(now, IsOk());
  }

  const std::string directory_;
  const std::string address_;
};

void Print(std::vector<absl::Duration> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  std::cout << times.size() << " times the server came back: p50 " << times[times.size() / 2]
            << ", p99 " << times[times.size() * 99 / 100] << "\n";
}

TEST_P(KillServerTest, TrainingGoesOnExactly) {
  const int kills = Kills();
  const uint64_t steps = kStepsPerKill * kills + kLastSteps;
  auto server = StartServer();
  const auto first = StartWorker(1, steps);
  const auto second = StartWorker(3, steps);
  std::mt19937 random(kills);
  std::vector<absl::Duration> times;
  for (int kill = 0; kill < kills; ++kill) {
    WaitForStep(kStepsPerKill * kill + 1 + random() % (kStepsPerKill - 1));
    server->Signal(SIGKILL);
    const absl::Time killed = absl::Now();
    ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL));
    server = StartServer();
    times.push_back(absl::Now() - killed);
  }
  Print(times);
  const std::string expected =
      absl::StrCat("parameters at step ", steps, ": -", 2 * steps, " to -", 2 * steps);
  for (Process* worker : {first.get(), second.get()}) {
    EXPECT_THAT(worker->Wait(absl::Minutes(5)), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"), ElementsAre(expected));
  }
  EXPECT_THAT(server->Wait(), IsOkAndHolds(0));
  const std::string books = Books(server->output());
  EXPECT_THAT(books, HasSubstr(absl::StrCat(steps, " steps"))) << server->output();
  EXPECT_THAT(books, ::testing::Not(HasSubstr("unbalanced")));
}

INSTANTIATE_TEST_SUITE_P(Durabilities, KillServerTest, ::testing::Values("journal", "memory"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TwoServersTest, TheSecondOnADirectoryIsToldWhoHoldsIt) {
  const std::string directory = absl::StrCat("--checkpoint-dir=", ::testing::TempDir(), "two");
  const Words server = {RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0", directory};
  const auto first = Start(server);
  ASSERT_THAT(first->WaitForOutput("listening on"), IsOk());
  const auto second = Start(server);
  EXPECT_THAT(second->Wait(), IsOkAndHolds(1));
  EXPECT_THAT(second->output(), HasSubstr(absl::StrCat("is held by process ", first->pid())));
}

}  // namespace
}  // namespace sluice

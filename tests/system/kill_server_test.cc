// A server that is killed comes back, its workers join it by themselves, and nothing that they were
// told is lost or counted twice.
//
// Workers 1 and 2 push gradients of 1 and 3 from parameters 0 with learning rate 1: each step
// subtracts 2, whatever else happens. SLUICE_KILLS is how often the server is killed; the times
// that it takes to come back are printed.

#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/server_lives.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/record_sheet.h"
#include "tests/testing/quantile.h"
#include "tests/testing/seed.h"
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

struct Kind {
  const char* name;
  Words server;
  Words worker;
};

class KillServerTest : public ::testing::TestWithParam<Kind> {
 protected:
  KillServerTest()
      : lives_(absl::StrCat(::testing::TempDir(), "kill_server_", GetParam().name), ServerFlags()) {
  }

  static Words ServerFlags() {
    Words words = {"--workers=2", "--checkpoint-every=7"};
    words.insert(words.end(), GetParam().server.begin(), GetParam().server.end());
    return words;
  }

  std::unique_ptr<Process> StartWorker(int gradient, uint64_t steps) const {
    Words words = {absl::StrCat("--steps=", steps), absl::StrCat("--gradient=", gradient)};
    words.insert(words.end(), GetParam().worker.begin(), GetParam().worker.end());
    return lives_.StartWorker(absl::StrCat("worker", gradient), words);
  }

  const ServerLives lives_;
};

void Print(const std::vector<absl::Duration>& times) {
  if (times.empty()) return;
  std::cout << times.size() << " times the server came back: p50 " << Quantile(times, 0.5)
            << ", p99 " << Quantile(times, 0.99) << "\n";
}

TEST_P(KillServerTest, TrainingGoesOnExactly) {
  const int kills = Kills();
  const uint64_t steps = kStepsPerKill * kills + kLastSteps;
  SCOPED_TRACE(HowToRepeat());
  RecordSheet sheet(absl::StrCat("kill_server.", GetParam().name), RunSeed());
  auto server = lives_.StartAndAwait();
  const auto first = StartWorker(1, steps);
  const auto second = StartWorker(3, steps);
  std::mt19937_64 random(RunSeed());
  std::vector<absl::Duration> times;
  for (int kill = 0; kill < kills; ++kill) {
    lives_.WaitForStep(kStepsPerKill * kill + 1 + random() % (kStepsPerKill - 1));
    server->Signal(SIGKILL);
    const absl::Time killed = absl::Now();
    ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL));
    server = lives_.StartAndAwait();
    times.push_back(absl::Now() - killed);
    for (Process* worker : {first.get(), second.get()}) ServerLives::ExpectAtWork(*worker);
  }
  Print(times);
  const std::string expected =
      absl::StrCat("parameters at step ", steps, ": -", 2 * steps, " to -", 2 * steps);
  for (Process* worker : {first.get(), second.get()}) {
    EXPECT_THAT(worker->Wait(absl::Minutes(5)), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"), ElementsAre(expected));
  }
  EXPECT_THAT(server->Wait(), IsOkAndHolds(0));
  const std::string counters = Counters(server->output());
  EXPECT_THAT(counters, HasSubstr(absl::StrCat(steps, " steps"))) << server->output();
  EXPECT_THAT(counters, ::testing::Not(HasSubstr("unbalanced")));
  sheet.Count("kills", times.size());
  sheet.Count("steps", steps);
  sheet.Times("recovery_s", times);
  EXPECT_THAT(sheet.Write(), IsOk());
}

INSTANTIATE_TEST_SUITE_P(
    , KillServerTest,
    ::testing::Values(Kind{"journal", {"--durability=journal"}, {}},
                      Kind{"memory", {"--durability=memory"}, {}},
                      // Twice 4 MiB is the least that goes through two connections.
                      Kind{"two_connections",
                           {"--durability=memory", "--shared-memory=off"},
                           {"--connections=2", "--elements=2097152"}}),
    [](const auto& info) { return std::string(info.param.name); });

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

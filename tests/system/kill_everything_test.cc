// Server and workers are killed at once. The server that follows replays its journal and holds the
// same bits, also where they depend on the order in which gradients arrived and on how stale they
// were.

#include <signal.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/server_lives.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/seed.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_follower.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::Not;

constexpr uint32_t kElements = 3;
constexpr int kKills = 4;
constexpr int kMostKills = 12;  // until the journal was not behind
constexpr uint64_t kStepsPerKill = 150;

using StepAndParameters = std::pair<uint64_t, std::vector<float>>;

StepAndParameters Newest(const ServerLives& lives) {
  ParameterFollower follower(ConnectTo(lives.address()), ObserverRequest("observer", kElements),
                             Process::kPatience);
  std::vector<float> parameters(kElements);
  const auto step = follower.Next(1, absl::MakeSpan(parameters));
  EXPECT_THAT(step, IsOk());
  if (!step.ok() || !step->has_value()) return {};
  return {(*step)->step.value(), parameters};
}

void Kill(Process& process) {
  process.Signal(SIGKILL);
  EXPECT_THAT(process.Wait(), IsOkAndHolds(-SIGKILL));
}

TEST(KillEverythingTest, StaleGradientsCountAgainWithTheSameBits) {
  SCOPED_TRACE(HowToRepeat());
  std::mt19937_64 random(RunSeed());
  const ServerLives lives(
      absl::StrCat(::testing::TempDir(), "kill_everything"),
      {"--workers=3", "--mode=async", "--staleness-rules=gap-aware,ordered-momentum",
       "--durability=journal", "--checkpoint-every=100"});
  auto server = lives.StartAndAwait();
  int compared = 0;
  for (int kill = 0; kill < kKills || (compared == 0 && kill < kMostKills); ++kill) {
    std::vector<std::unique_ptr<Process>> workers;
    for (const char* const gradient : {"1", "-0.3", "0.01"}) {
      workers.push_back(lives.StartWorker(
          absl::StrCat("worker", workers.size()),
          {"--steps=1000000000", "--momentum=0.9", absl::StrCat("--elements=", kElements),
           absl::StrCat("--gradient=", gradient)}));
    }
    lives.WaitForStep(kStepsPerKill * (kill + 1) + random() % kStepsPerKill);
    for (const auto& worker : workers) Kill(*worker);
    // What a killed worker has sent may still arrive.
    StepAndParameters before = Newest(lives);
    for (auto now = Newest(lives); now != before; now = Newest(lives)) before = now;
    Kill(*server);
    server = lives.StartAndAwait();
    const StepAndParameters after = Newest(lives);
    // The last steps may have been published, and told to nobody, before they were in the journal.
    EXPECT_LE(after.first, before.first);
    if (after.first == before.first) {
      EXPECT_EQ(after.second, before.second) << "at step " << after.first;
      EXPECT_THAT(after.second, Not(Each(0.0F)));
      ++compared;
    }
  }
  RecordProperty("compared", compared);
  EXPECT_GE(compared, 1) << "the journal was behind at every kill";
}

}  // namespace
}  // namespace sluice

// In every mode, however it was launched, a job of four workers outlives one that is killed at a
// random point: it ends, its counters balance, its parameters are exact, and no step waits for
// longer than the lease.
//
// All gradients are 1 and the learning rate is 1, so each step subtracts 1, whoever contributes.
// The one that is killed has no last step, so that it is there to be killed however late that is.
// Under mpirun tensors are in shared memory, standalone they go through TCP.

#include <signal.h>

#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 4;
constexpr int kElements = 300'000;    // of the model: two chunks, of which the second is not full
constexpr int kKills = 3;             // of each mode and launch; each commit draws others
constexpr uint32_t kLatestKill = 60;  // accepted pushes; each job has many times as many
constexpr uint64_t kNoEnd = 1'000'000'000;
constexpr double kLeaseSeconds = 2;
constexpr double kMachineSeconds = 6;  // what a busy machine may add to a wait

struct Mode {
  std::string name;
  Words flags;
  int steps;
};

const Mode kModes[] = {
    {"Sync", {"--mode=sync"}, 200},
    {"Backup", {"--mode=backup", "--quorum=3"}, 200},
    {"Bounded", {"--mode=bounded", "--quorum=2", "--max-staleness=3"}, 350},
    {"Ssp", {"--mode=ssp", "--slack=2"}, 700},
    {"Async", {"--mode=async"}, 700},
};

enum class Launch { kMpirun, kStandalone };

using Case = std::tuple<Mode, Launch, int>;

Words Server(const Mode& mode, const Words& flags) {
  // Without rules for stale gradients, each step moves each parameter by exactly 1.
  Words words = {RunfilePath("server/sluice_server"), absl::StrCat("--lease=", kLeaseSeconds),
                 absl::StrCat("--workers=", kWorkers), "--staleness-rules=none"};
  words.insert(words.end(), mode.flags.begin(), mode.flags.end());
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

Words Worker(uint64_t steps, const Words& flags = {}) {
  Words words = {RunfilePath("tests/testing/process/pushing_worker_program"), "--gradient=1",
                 absl::StrCat("--elements=", kElements), absl::StrCat("--steps=", steps)};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

class KillAnywhereTest : public ::testing::TestWithParam<Case> {
 protected:
  const Mode& mode() const { return std::get<0>(GetParam()); }

  // Draws who is killed, and after how many pushes.
  void SetUp() override {
    const auto& [mode, launch, number] = GetParam();
    std::mt19937 random(RunSeed() + std::hash<std::string>()(mode.name) +
                        100 * static_cast<int>(launch) + number);
    victim_ = static_cast<int>(random() % kWorkers);
    after_pushes_ = 1 + random() % kLatestKill;
  }

  uint64_t StepsOf(int worker) const { return worker == victim_ ? kNoEnd : mode().steps; }

  // The server's rank and the workers', which have their index by the order of ranks.
  std::vector<Ranks> AllRanks() const {
    std::vector<Ranks> parts = {{1, Server(mode(), {})}};
    for (int i = 0; i < kWorkers; ++i) parts.push_back({1, Worker(StepsOf(i))});
    return parts;
  }

  // The job waits for all workers, so for one that is killed before it has joined, too. In the
  // asynchronous modes the others make steps meanwhile.
  absl::Status WaitUntilKill(const std::string& address) const {
    const absl::Status begun = WaitForTraining(address);
    return begun.ok() ? WaitForAccepted(address, after_pushes_) : begun;
  }

  void ExpectParametersAreExact(const std::string& output, size_t workers) const {
    const std::vector<std::string> lines = LinesWith(output, "parameters at step ");
    EXPECT_EQ(lines.size(), workers) << output;
    for (const std::string& line : lines) {
      const std::string step = line.substr(19, line.find(':') - 19);
      EXPECT_EQ(line, absl::StrCat("parameters at step ", step, ": -", step, " to -", step));
    }
  }

  void ExpectSoundEnd(const std::string& output) const {
    EXPECT_THAT(Counters(output), AllOf(HasSubstr("accepted"), Not(HasSubstr("unbalanced")),
                                        Not(HasSubstr("in progress"))))
        << output;
    double waited = -1;
    const std::string wait = ClosingRows(output)["longest wait for a step"];
    ASSERT_TRUE(absl::SimpleAtod(absl::StripSuffix(wait, " s"), &waited)) << output;
    EXPECT_LE(waited, kLeaseSeconds + kMachineSeconds) << output;
  }

  int victim_ = 0;
  uint32_t after_pushes_ = 0;
};

TEST_P(KillAnywhereTest, TheOthersFinish) {
  SCOPED_TRACE(HowToRepeat());
  SCOPED_TRACE(absl::StrCat("worker ", victim_, " is killed after ", after_pushes_, " pushes"));
  if (std::get<1>(GetParam()) == Launch::kMpirun) {
    const auto job = Mpirun(AllRanks(), RankDeath::kIsRecovered);
    const auto address = job->WaitForOutput("listening on ([^ ]+)");
    ASSERT_THAT(address, IsOk());
    ASSERT_THAT(WaitUntilKill(*address), IsOk());
    const auto pid = PidOfWorker(*address, victim_);
    ASSERT_THAT(pid, IsOk());
    const bool killed = kill(*pid, SIGKILL) == 0;
    ASSERT_THAT(job->Wait(), IsOk());
    ASSERT_TRUE(killed) << "no process " << *pid << "\n" << job->output();
    ExpectParametersAreExact(job->output(), kWorkers - 1);
    ExpectSoundEnd(job->output());
    return;
  }
  const auto server = Start(Server(mode(), {"--listen=127.0.0.1:0", "--shared-memory=off"}));
  const auto address = server->WaitForOutput("listening on ([^ ]+)");
  ASSERT_THAT(address, IsOk());
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(Start(Worker(StepsOf(i), {absl::StrCat("--server=", *address)})));
  }
  ASSERT_THAT(WaitUntilKill(*address), IsOk());
  workers[victim_]->Signal(SIGKILL);
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_THAT(workers[i]->Wait(), IsOkAndHolds(i == victim_ ? -SIGKILL : 0))
        << workers[i]->output();
    if (i != victim_) ExpectParametersAreExact(workers[i]->output(), 1);
  }
  EXPECT_THAT(server->Wait(), IsOkAndHolds(0)) << server->output();
  ExpectSoundEnd(server->output());
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  const auto& [mode, launch, number] = info.param;
  return absl::StrCat(mode.name, launch == Launch::kMpirun ? "UnderMpirun" : "Standalone", number);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, KillAnywhereTest,
                         ::testing::Combine(::testing::ValuesIn(kModes),
                                            ::testing::Values(Launch::kMpirun, Launch::kStandalone),
                                            ::testing::Range(0, kKills)),
                         NameOf);

}  // namespace
}  // namespace sluice

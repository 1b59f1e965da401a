// The contract of a shard (server/README.md) holds in 2,000 random stories, each from its seed.
// The first seed follows from the commit, so each commit plays others.

#include "tests/simulation/simulation.h"

#include <glog/logging.h>

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace sluice {
namespace {

constexpr uint64_t kSeedsPerTest = 500;

// No warnings of lost workers, thousands a second.
class QuietLog : public ::testing::Environment {
 public:
  void SetUp() override { FLAGS_minloglevel = google::GLOG_ERROR; }
};

const ::testing::Environment* const kQuietLog =
    ::testing::AddGlobalTestEnvironment(new QuietLog);  // GoogleTest deletes it

// Each test plays one quarter of the seeds, which its number gives.
class SimulationTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulationTest, TheContractHolds) {
  const uint64_t first = RunSeed() + GetParam() * kSeedsPerTest;
  for (uint64_t seed = first; seed < first + kSeedsPerTest; ++seed) {
    if (!Simulate(seed, false).violation.empty()) FAIL() << Report(seed);
  }
}

// Each broke the contract once, or the oracle was wrong. They stay the same stories as long as
// Chaos and Calm draw the same events.
TEST(FoundTest, TheContractHolds) {
  for (const uint64_t seed : {5003688, 5018973, 9043495, 20363757, 700277618, 700427419}) {
    EXPECT_EQ(Simulate(seed, false, {1, /*journal=*/false}).violation, "") << "seed " << seed;
  }
}

// Likewise of jobs with a journal. The server admitted a push before the step of its last gradient
// counted as held in memory (18), waited for a worker that took part from the next step only
// (253, 8), and found answers of a process that had lost them meanwhile (5, 92).
TEST(FoundTest, TheContractHoldsWithAJournal) {
  const std::pair<uint32_t, uint64_t> kFound[] = {{1, 18}, {3, 18}, {1, 253},
                                                  {2, 8},  {1, 5},  {2, 92}};
  for (const auto& [servers, seed] : kFound) {
    EXPECT_EQ(Simulate(seed, false, {servers, /*journal=*/true}).violation, "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, SimulationTest, ::testing::Range(uint64_t{0}, uint64_t{4}));

TEST(ReplayTest, TellsTheSameStory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Story told = Simulate(seed, true);
    EXPECT_EQ(told.events, Simulate(seed, true).events);
    EXPECT_EQ(told.violation, Simulate(seed, false).violation);
  }
}

}  // namespace
}  // namespace sluice

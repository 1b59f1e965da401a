#include "server/staleness_policy.h"

#include <cstdint>
#include <limits>

#include "absl/types/optional.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint64_t kVeryStale = std::numeric_limits<uint64_t>::max();

StalenessPolicy Sync(uint32_t quorum = 1) {
  Consistency consistency;
  consistency.mode = ConsistencyMode::kSync;
  consistency.quorum = quorum;
  return StalenessPolicy(consistency);
}

StalenessPolicy Async(uint32_t quorum, absl::optional<uint32_t> max_staleness = absl::nullopt) {
  Consistency consistency;
  consistency.mode = ConsistencyMode::kAsync;
  consistency.quorum = quorum;
  consistency.max_staleness = max_staleness;
  return StalenessPolicy(consistency);
}

StepProgress Started(uint32_t accumulated, uint32_t members, uint32_t missing) {
  StepProgress progress;
  progress.started = true;
  progress.accumulated = accumulated;
  progress.members = members;
  progress.missing = missing;
  return progress;
}

StepProgress NotStarted(uint32_t accumulated, uint32_t members, uint32_t missing) {
  StepProgress progress = Started(accumulated, members, missing);
  progress.started = false;
  return progress;
}

TEST(SyncPolicyTest, AdmitsFreshGradientsOnly) {
  EXPECT_TRUE(Sync().Admits(0));
  EXPECT_FALSE(Sync().Admits(1));
  EXPECT_FALSE(Sync().Admits(kVeryStale));
}

TEST(SyncPolicyTest, CompletesWhenNobodyIsMissing) {
  EXPECT_FALSE(Sync().Completes(Started(2, 3, 1)));
  EXPECT_TRUE(Sync().Completes(Started(3, 3, 0)));
}

TEST(SyncPolicyTest, NeedsOneGradientAtLeast) { EXPECT_FALSE(Sync().Completes(Started(0, 0, 0))); }

// Who has contributed counts, not how many: the gradients may be those of workers that are gone.
TEST(SyncPolicyTest, WaitsForWhoIsMissingHoweverManyHaveContributed) {
  EXPECT_FALSE(Sync(2).Completes(Started(5, 1, 1)));
  EXPECT_TRUE(Sync(5).Completes(Started(1, 0, 0)));
}

TEST(SyncPolicyTest, CompletesNoStepBeforeTheStart) {
  EXPECT_FALSE(Sync(3).Completes(NotStarted(1, 1, 0)));
}

TEST(SyncPolicyTest, RequiresWhatHasComeAndWhatIsMissing) {
  EXPECT_EQ(Sync(4).Required(Started(1, 3, 2)), 3u);
  EXPECT_EQ(Sync(4).Required(NotStarted(0, 2, 2)), 4u);
  EXPECT_EQ(Sync(4).Required(NotStarted(0, 6, 6)), 6u);
}

TEST(SyncPolicyTest, TakesOneContributionOfAWorkerAndLetsJoinersWaitForTheNextStep) {
  EXPECT_TRUE(Sync().OncePerStep());
  EXPECT_TRUE(Sync().JoinsAtStepBoundary());
}

TEST(AsyncPolicyTest, AdmitsUpToTheBoundAndNotBeyond) {
  EXPECT_TRUE(Async(1, 3).Admits(0));
  EXPECT_TRUE(Async(1, 3).Admits(3));
  EXPECT_FALSE(Async(1, 3).Admits(4));
  EXPECT_FALSE(Async(1, 3).Admits(kVeryStale));
  EXPECT_TRUE(Async(1, 0).Admits(0));
  EXPECT_FALSE(Async(1, 0).Admits(1));
}

TEST(AsyncPolicyTest, AdmitsAnythingWithoutABound) { EXPECT_TRUE(Async(1).Admits(kVeryStale)); }

TEST(AsyncPolicyTest, CompletesAtItsQuorumWhoeverIsMissing) {
  EXPECT_FALSE(Async(2).Completes(Started(0, 3, 3)));
  EXPECT_FALSE(Async(2).Completes(Started(1, 3, 3)));
  EXPECT_TRUE(Async(2).Completes(Started(2, 3, 3)));
  EXPECT_TRUE(Async(2).Completes(NotStarted(2, 1, 1)));
}

TEST(AsyncPolicyTest, RequiresItsQuorum) {
  EXPECT_EQ(Async(2).Required(Started(1, 3, 3)), 2u);
  EXPECT_EQ(Async(2).Required(NotStarted(0, 5, 5)), 2u);
}

TEST(AsyncPolicyTest, TakesAnyNumberOfContributionsAndJoinersAtOnce) {
  EXPECT_FALSE(Async(2).OncePerStep());
  EXPECT_FALSE(Async(2).JoinsAtStepBoundary());
}

}  // namespace
}  // namespace sluice

// What a shard says about workers that are lost, and about gradients that are dropped.

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(LostWorkersTest, HalfOfTheWorkersLostIsAWarningUntilTheyAreBack) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kWorkersLost);
  EXPECT_THAT(warnings[0].text, HasSubstr("1 of 2 workers were evicted"));
  ASSERT_THAT(world.Join("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(0));
}

TEST(LostWorkersTest, ThoseThatCameTooLateAreAWarningUntilTheyAreThere) {
  ShardOptions options = Sync(3);
  options.start_timeout = absl::Seconds(5);
  ShardWorld world(options);
  EXPECT_FALSE(world.Join("a")->late);
  world.Pass(absl::Seconds(4));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
  world.Pass(absl::Seconds(1));
  const auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kWorkersLate);
  EXPECT_THAT(warnings[0].text, HasSubstr("2 of 3 workers had not joined"));
  EXPECT_TRUE(world.Join("b")->late);
  EXPECT_EQ(world.shard().Describe().warnings[0].over, absl::nullopt);
  EXPECT_TRUE(world.Join("c")->late);
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(0));
  EXPECT_FALSE(world.Join("d")->late);  // nobody expected it
}

TEST(LostWorkersTest, AQuorumOfMoreWorkersThanThereAreIsAWarningInBackupAlone) {
  ShardWorld world(Backup(3, 2));
  world.Start({"a", "b"});
  auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kTooFewWorkers);
  EXPECT_THAT(warnings[0].text, HasSubstr("it is 3, and the job has 2 workers"));
  // A step takes those that there are.
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), IsOk());
  EXPECT_EQ(world.shard().Describe().step, Step(0));
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), IsOk());
  EXPECT_EQ(world.shard().Describe().step, Step(1));
  ASSERT_THAT(world.Join("c"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(1));
}

TEST(LostWorkersTest, AQuorumBecomesTooLargeByThePolicyAndByEvictionsNotByWorkersThatAreDone) {
  ShardWorld world(Backup(2, 3));
  world.Start({"a", "b", "c"});
  ASSERT_THAT(world.Leave("a"), IsOk());
  ASSERT_THAT(world.Leave("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
  Consistency larger = Backup(4, 3).consistency;
  ASSERT_THAT(world.shard().SetConsistency(larger, absl::nullopt), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, SizeIs(1));
  larger.mode = ConsistencyMode::kAsync;  // gradients, of any worker
  ASSERT_THAT(world.shard().SetConsistency(larger, absl::nullopt), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_TRUE(world.shard().Describe().warnings[0].over.has_value());
}

TEST(LostWorkersTest, AQuorumIsTooLargeOnceWorkersHaveFailed) {
  ShardWorld world(Backup(2, 3));
  world.Start({"a", "b", "c"});
  for (const char* name : {"a", "b"}) {
    ASSERT_THAT(world.shard().Leave(world.session(name), {{}, "no more data"}), IsOk());
  }
  world.Pass(absl::Seconds(1));
  std::vector<WarningKind> kinds;
  for (const TrainingWarning& warning : world.shard().Describe().warnings) {
    kinds.push_back(warning.kind);
  }
  EXPECT_THAT(kinds, UnorderedElementsAre(WarningKind::kWorkersLost, WarningKind::kTooFewWorkers));
}

TEST(LostWorkersTest, AreCountedUntilTheyAreBack) {
  ShardWorld world(Async(1));
  world.Start({"a", "b", "c"});
  world.Lose("b");
  const WorkerCounts lost = world.shard().Describe().worker_counts;
  EXPECT_EQ(lost.connected, 2u);
  EXPECT_EQ(lost.open, 3u);
  EXPECT_EQ(lost.evicted, 0u);
  world.Pass(absl::Seconds(11));
  const WorkerCounts evicted = world.shard().Describe().worker_counts;
  EXPECT_EQ(evicted.open, 2u);
  EXPECT_EQ(evicted.evicted, 1u);
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_EQ(world.shard().Describe().worker_counts.evicted, 0u);
}

TEST(LostWorkersTest, AWorkerOfAnotherNameTakesThePlaceOfOneThatIsLost) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  for (const auto& [lost, next] :
       {std::make_pair("b", "c"), std::make_pair("c", "d"), std::make_pair("d", "e")}) {
    ASSERT_THAT(world.Join(next), IsOk());
    world.Silence(lost);
    world.Pass(absl::Seconds(11));
  }
  // Three were evicted, and three were present at most.
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(LostWorkersTest, ALostWorkersPlaceIsTakenWhenAnotherOneJoins) {
  ShardWorld world(Async(1));
  world.Start({"a", "b"});
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  ASSERT_THAT(world.shard().Describe().warnings, SizeIs(1));
  ASSERT_THAT(world.Join("c"), IsOk());
  EXPECT_EQ(world.shard().Describe().warnings[0].over, Step(0));
}

TEST(LostWorkersTest, AWorkerWhoseConnectionBrokeIsNotCountedBesideTheOneInItsPlace) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  world.Silence("a");
  world.Lose("a");
  ASSERT_THAT(world.Join("b"), IsOk());
  world.Pass(absl::Seconds(11));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(LostWorkersTest, AWorkerThatIsDoneIsNotLost) {
  ShardWorld world(Async(1));
  world.Start({"a", "b", "c"});
  for (const auto& [lost, next] : {std::make_pair("b", "d"), std::make_pair("c", "e")}) {
    ASSERT_THAT(world.Join(next), IsOk());
    world.Silence(lost);
    world.Pass(absl::Seconds(11));
  }
  ASSERT_THAT(world.Leave("a"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(LostWorkersTest, WorkersThatAreDoneMakeNoLossOfAnEarlierOne) {
  ShardWorld world(Async(1));
  world.Start({"a", "b", "c", "d"});
  world.Silence("d");
  world.Pass(absl::Seconds(11));
  ASSERT_THAT(world.Leave("a"), IsOk());
  ASSERT_THAT(world.Leave("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(LostWorkersTest, WorkersThatAreAllLostAreAWarningBeforeTheJobEnds) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  world.Silence("a");
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  const ShardStatus status = world.shard().Describe();
  EXPECT_EQ(status.phase, Phase::kTraining);
  ASSERT_THAT(status.warnings, SizeIs(1));
  EXPECT_THAT(status.warnings[0].text, HasSubstr("2 of 2 workers were evicted"));
  world.Pass(absl::Seconds(11));
  EXPECT_EQ(world.shard().Describe().phase, Phase::kFinished);
}

TEST(LostWorkersTest, AWorkerThatTheOperatorEvictedIsNotLost) {
  ShardWorld world(Sync(2));
  world.Start({"a", "b"});
  ASSERT_THAT(world.shard().Evict("b"), IsOk());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

TEST(DroppedGradientsTest, ABoundThatDropsMostGradientsIsAWarning) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});
  for (int i = 0; i < 100; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  const auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kGradientsDropped);
  EXPECT_THAT(warnings[0].text, HasSubstr("older than --max-staleness; raise it"));
}

TEST(DroppedGradientsTest, GradientsThatAnotherModeDroppedAreNotHeldAgainstABound) {
  ShardWorld world(Backup(1, 2));
  world.Start({"a", "b"});
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  ASSERT_THAT(world.shard().SetConsistency(Bounded(1, 0).consistency), IsOk());
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
  }
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

}  // namespace
}  // namespace sluice

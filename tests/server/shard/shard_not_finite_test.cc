// Steps whose result would not be finite: what stays as it was in the optimizer, and in the
// journal. What the workers are told is in tests/scripts/not_finite.txt.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/recording_journal.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kHuge = 3e38f;  // finite; twice as much is not

auto WouldNotBeFinite(const std::string& where) {
  return IsError(Reason::kNotFinite, HasSubstr(absl::StrCat("would make ", where)));
}

// The momentum buffer, or whatever slot the optimizer has first.
Values FirstSlot(Shard& shard) {
  Values values;
  shard.durability().TakeCheckpoint(
      [&](const absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>& taken) {
        values = ValuesOf((*taken)->slots[0].values.span());
      });
  return values;
}

// A step that is finite may still make a slot infinite.
TEST(NotFiniteStepTest, AnInfiniteSlotIsNotPublished) {
  ShardWorld adam(Async(1), ParametersOnly(3), AdamOptions());
  adam.Start({"a"});
  // Its square is infinite, and its step then 0.
  EXPECT_THAT(adam.Push("a", 0, {0, 1e25f, 0}), WouldNotBeFinite("w[1]"));
  EXPECT_THAT(adam.Parameters(), ElementsAre(0, 0, 0));
  EXPECT_THAT(FirstSlot(adam.shard()), ElementsAre(0, 0, 0));
}

TEST(NotFiniteStepTest, LeavesTheMomentumAsItWas) {
  SgdOptions options = PlainSgd();
  options.momentum = 0.5;
  ShardWorld world(Async(1), ParametersOnly(3), options);
  world.Start({"a"});
  ASSERT_THAT(world.Push("a", 0, {2, 4, 8}), Applied(1));
  const Values momentum = FirstSlot(world.shard());
  ASSERT_THAT(world.Push("a", 1, {1, 1, -kHuge}), Applied(2));
  ASSERT_THAT(world.Push("a", 2, {1, 1, -kHuge}), WouldNotBeFinite("w[2]"));
  EXPECT_THAT(FirstSlot(world.shard()), ElementsAre(2, 3, -kHuge));
  EXPECT_EQ(momentum, Values({2, 4, 8}));
}

TEST(NotFiniteStepTest, APullWithInconsistentReadsKeepsWhatItHolds) {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  const uint32_t size = (5 << 18) + 3;  // progress is reported before the last part
  ShardWorld world(options, ParametersOnly(size));
  world.Start({"a"});
  Values gradient(size, 1);
  ASSERT_THAT(world.Push("a", 0, gradient), Applied(1));
  gradient.back() = -kHuge;
  ASSERT_THAT(world.Push("a", 1, gradient), Applied(2));
  ASSERT_THAT(world.Push("a", 2, gradient), IsError(Reason::kNotFinite, HasSubstr("would make")));
  EXPECT_EQ(world.step(), 3u);
  EXPECT_EQ(world.Parameters().front(), -2);
  EXPECT_EQ(world.shard().store().stripe().newest(size)->step, Step(3));
}

// ---- With a journal ----

TEST(NotFiniteStepTest, TheJournalHoldsAStepWithoutGradientsAndReplayRemakesIt) {
  RecordingJournal journal;
  ShardOptions options = Sync(2);
  options.guards.skip_not_finite = true;
  ShardWorld world(options);
  world.shard().durability().EnableJournal(&journal);
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize({1, 2, 3}), IsOk());
  std::shared_ptr<const ShardCheckpoint> begin;
  world.shard().durability().TakeCheckpoint([&](auto taken) { begin = *taken; });
  // With a journal no push is answered before its step is durable.
  const auto push = [&world](const std::string& name, const Values& gradient) {
    auto arriving = world.Begin(name, world.step());
    EXPECT_THAT(arriving->Add(ChunkOf(0, gradient)), IsOk());
    auto outcome = std::make_shared<absl::StatusOr<PushOutcome>>(absl::UnknownError("no answer"));
    world.shard().store().FinishPush(std::move(arriving),
                                     [outcome](auto answer) { *outcome = answer; });
    return outcome;
  };
  const auto first = push("a", {kHuge, 1, 1});
  const auto second = push("b", {kHuge, 1, 1});
  world.shard().durability().OnDurable(Step(1));
  EXPECT_THAT(*first, Skipped(0));
  EXPECT_THAT(*second, Skipped(0));
  push("a", {1, 1, 1});
  push("b", {3, 3, 3});
  world.shard().durability().OnDurable(Step(2));
  ASSERT_EQ(journal.records.size(), 2u);
  EXPECT_EQ(journal.records[0].gradients, 0u);
  EXPECT_EQ(journal.records[0].checksum, 0u);
  EXPECT_NE(journal.records[1].checksum, 0u);
  EXPECT_THAT(journal.sums[0], ElementsAre());
  ASSERT_EQ(journal.records[0].contributors.size(), 2u);
  for (const SessionRecord& worker : journal.records[0].contributors) {
    ASSERT_EQ(worker.answers.size(), 1u);
    EXPECT_EQ(worker.answers.begin()->second.outcome.disposition, Disposition::kSkipped);
    EXPECT_EQ(worker.skipped, 1u);
  }
  ShardWorld later(Sync(2));
  ASSERT_THAT(later.shard().durability().Restore(*begin), IsOk());
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_THAT(
        later.shard().durability().Replay(journal.records[i], journal.sums[i], journal.row_sums[i]),
        IsOk())
        << i;
  }
  EXPECT_EQ(later.Parameters(), world.Parameters());
  EXPECT_THAT(later.Parameters(), ElementsAre(-1, 0, 1));
}

}  // namespace
}  // namespace sluice

// With a journal, a push that counts is answered only when its step is durable.

#include <cmath>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/recording_journal.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeptAnswersTest : public ::testing::Test {
 protected:
  using Answer = absl::optional<absl::StatusOr<PushOutcome>>;

  void Start(const ShardOptions& options, const std::vector<std::string>& workers) {
    world_.emplace(options);
    world_->shard().durability().EnableJournal(&journal_);
    world_->Start(workers);
  }

  // Finishes a push whose answer may come later.
  std::shared_ptr<Answer> Push(const char* name, uint64_t step, const Values& gradient) {
    return Finish(world_->Begin(name, step), gradient);
  }

  std::shared_ptr<Answer> Finish(std::unique_ptr<PendingPush> push, const Values& gradient) {
    EXPECT_THAT(push->Add(ChunkOf(0, gradient)), IsOk());
    auto answer = std::make_shared<Answer>();
    world_->shard().store().FinishPush(std::move(push),
                                       [answer](const auto& told) { *answer = told; });
    return answer;
  }

  RecordingJournal journal_;
  absl::optional<ShardWorld> world_;
};

TEST_F(KeptAnswersTest, WaitForTheStepThatIsMadeOfThem) {
  Start(Sync(2), {"a", "b"});
  const auto a = Push("a", 0, {1, 2, 3});
  const auto b = Push("b", 0, {3, 2, 1});
  EXPECT_EQ(world_->step(), 1u);
  EXPECT_FALSE(a->has_value());
  EXPECT_FALSE(b->has_value());
  world_->shard().durability().OnDurable(Step(1));
  ASSERT_TRUE(a->has_value() && b->has_value());
  EXPECT_THAT(**a, Accepted(0));
  EXPECT_THAT(**b, Applied(1));
}

TEST_F(KeptAnswersTest, WhatIsKeptIsTheSumAndWhoMadeIt) {
  Start(Sync(2), {"a", "b"});
  Push("a", 0, {1, 2, 3});
  Push("b", 0, {3, 2, 1});
  ASSERT_EQ(journal_.records.size(), 1u);
  EXPECT_THAT(journal_.sums[0], ElementsAre(4, 4, 4));
  const StepRecord& record = journal_.records[0];
  EXPECT_EQ(record.step, Step(1));
  EXPECT_EQ(record.gradients, 2u);
  EXPECT_THAT(record.terms.learning_rates, ElementsAre(1));
  ASSERT_EQ(record.contributors.size(), 2u);
  EXPECT_EQ(record.contributors[1].worker, "b");
  EXPECT_EQ(record.contributors[1].last_sequence, Sequence(1));
  world_->shard().durability().OnDurable(Step(1));
}

TEST_F(KeptAnswersTest, ARepeatedPushWaitsLikeTheFirst) {
  Start(Sync(1), {"a"});
  const auto first = Push("a", 0, {1, 1, 1});
  PushHeader again = world_->NextHeader("a", 0);
  again.sequence = Sequence(1);
  TestStart start = world_->BeginAs(again);
  EXPECT_FALSE(start.told());
  world_->shard().durability().OnDurable(Step(1));
  ASSERT_TRUE(start.told());
  EXPECT_THAT(start.answer(), Repeated(Disposition::kApplied, 1));
  EXPECT_TRUE(first->has_value());
}

TEST_F(KeptAnswersTest, AStalePushIsAnsweredAtOnce) {
  Start(Async(1), {"a", "b"});
  ASSERT_THAT(ChangeConsistency(world_->shard(), Bounded(1, 0).consistency), IsOk());
  const auto a = Push("a", 0, {1, 1, 1});
  const TestStart stale = world_->BeginAs(world_->NextHeader("b", 0));
  EXPECT_THAT(stale.answer(), Stale(1, 1));
  EXPECT_FALSE(a->has_value());
  world_->shard().durability().OnDurable(Step(1));
  EXPECT_TRUE(a->has_value());
}

TEST_F(KeptAnswersTest, AStepIsMadeOnceEveryWorkerWaitsForIt) {
  Start(Async(5), {"a", "b"});
  const auto a = Push("a", 0, {1, 1, 1});
  EXPECT_EQ(world_->step(), 0u);
  const auto b = Push("b", 0, {3, 3, 3});
  EXPECT_EQ(world_->step(), 1u);
  world_->shard().durability().OnDurable(Step(1));
  EXPECT_TRUE(a->has_value() && b->has_value());
}

TEST_F(KeptAnswersTest, AStepIsMadeThoughAWorkerTakesPartFromTheNext) {
  Start(Sync(2), {"a", "b"});
  auto of_a = world_->Begin("a", 0);
  ASSERT_EQ(world_->Join("c")->step, Step(1));
  ASSERT_THAT(ChangeConsistency(world_->shard(), Async(5).consistency), IsOk());
  const auto b = Push("b", 0, {3, 3, 3});
  EXPECT_EQ(world_->step(), 0u);
  const auto a = Finish(std::move(of_a), {1, 1, 1});
  EXPECT_EQ(world_->step(), 1u);
  world_->shard().durability().OnDurable(Step(1));
  EXPECT_TRUE(a->has_value() && b->has_value());
}

TEST_F(KeptAnswersTest, AStepThatIsNotDurableOccupiesTheVectorOfItsLastGradient) {
  ShardOptions options = Async(1);
  options.max_in_flight_bytes = 4 * 3 * sizeof(float);  // four vectors; one is reserved for "a"
  Start(options, {"a", "b", "c", "d", "e"});
  auto of_b = world_->Begin("b", 0);
  auto of_c = world_->Begin("c", 0);
  auto of_d = world_->Begin("d", 0);
  TestStart of_e = world_->BeginAs(world_->NextHeader("e", 0));
  Finish(std::move(of_b), {1, 1, 1});
  EXPECT_EQ(world_->step(), 1u);
  EXPECT_FALSE(of_e.told());
  world_->shard().durability().OnDurable(Step(1));
  ASSERT_TRUE(of_e.told());
  world_->shard().store().AbandonPush(std::move(of_c), Abandoned::kAborted);
  world_->shard().store().AbandonPush(std::move(of_d), Abandoned::kAborted);
  world_->shard().store().AbandonPush(of_e.Take(), Abandoned::kAborted);
}

TEST_F(KeptAnswersTest, WhatIsLeftOutOfNoStepInParticularDoesNotWait) {
  ShardOptions options = Async(1);
  options.guards.skip_not_finite = true;
  Start(options, {"a"});
  auto push = world_->Begin("a", 0);
  const absl::Status added = push->Add(ChunkOf(0, Values{NAN, 1, 1}));
  absl::optional<absl::StatusOr<PushOutcome>> answer;
  world_->shard().store().RefusePush(std::move(push), added,
                                     [&](const auto& told) { answer = told; });
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, Skipped(0));
}

TEST_F(KeptAnswersTest, NoPushIsTakenWhileStepsCannotBeKept) {
  Start(Sync(1), {"a"});
  world_->shard().durability().SetJournalError(
      MakeError(Reason::kJournalStopped, "the disk is full"));
  const TestStart refused = world_->BeginAs(world_->NextHeader("a", 0));
  EXPECT_THAT(refused.status(), IsError(Reason::kJournalStopped, HasSubstr("full")));
  EXPECT_TRUE(world_->shard().Describe().journal_stopped);
  EXPECT_EQ(world_->Pull(0).step(), 0u);
  world_->shard().durability().SetJournalError(absl::OkStatus());
  EXPECT_FALSE(world_->shard().Describe().journal_stopped);
  const auto a = Push("a", 0, {1, 1, 1});
  world_->shard().durability().OnDurable(Step(1));
  EXPECT_TRUE(a->has_value());
}

TEST_F(KeptAnswersTest, WhatWillNotBeKeptIsAnsweredWithTheReason) {
  Start(Sync(2), {"a", "b"});
  const auto a = Push("a", 0, {1, 1, 1});
  world_->shard().durability().FailHeldAnswers(MakeError(Reason::kDraining, "going down"));
  ASSERT_TRUE(a->has_value());
  EXPECT_THAT(**a, IsError(Reason::kDraining, HasSubstr("going down")));
}

TEST_F(KeptAnswersTest, WhatComesWhenNothingIsKeptAnyMoreDoesNotWait) {
  Start(Sync(2), {"a", "b"});
  world_->shard().durability().FailHeldAnswers(MakeError(Reason::kDraining, "going down"));
  const auto a = Push("a", 0, {1, 1, 1});
  ASSERT_TRUE(a->has_value());
  EXPECT_THAT(**a, IsError(Reason::kDraining, HasSubstr("going down")));
}

TEST_F(KeptAnswersTest, StepsAreMadeAgainToTheSameBits) {
  LambOptions lamb;
  lamb.learning_rate = 0.5;
  ShardOptions options = Sync(2);
  options.guards.clip_norm = 3;
  ShardWorld first(options, ParametersOnly(3), lamb);
  first.shard().durability().EnableJournal(&journal_);
  first.Start({"a", "b"});
  std::shared_ptr<const ShardCheckpoint> checkpoint;
  first.shard().durability().TakeCheckpoint([&](const auto& taken) { checkpoint = *taken; });
  for (uint64_t step = 0; step < 4; ++step) {
    for (const char* name : {"a", "b"}) {
      auto push = first.Begin(name, step);
      const auto x = static_cast<float>(step + 1);
      ASSERT_THAT(push->Add(ChunkOf(0, Values{x, -x, 1})), IsOk());
      first.shard().store().FinishPush(std::move(push), [](const auto&) {});
    }
    first.shard().durability().OnDurable(Step(step + 1));
  }
  options.incarnation = Incarnation(2);
  ShardWorld second(options, ParametersOnly(3), lamb);
  EXPECT_THAT(second.shard().durability().Restore(*checkpoint), IsOk());
  for (size_t i = 0; i < journal_.records.size(); ++i) {
    EXPECT_THAT(second.shard().durability().Replay(journal_.records[i], journal_.sums[i],
                                                   journal_.row_sums[i]),
                IsOk());
  }
  second.shard().durability().BeginIncarnation({});
  EXPECT_EQ(second.step(), 4u);
  EXPECT_EQ(second.Parameters(), first.Parameters());
  const auto welcome = second.Join("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_TRUE(welcome->resumed);
  EXPECT_EQ(welcome->last_sequence, Sequence(4));
}

}  // namespace
}  // namespace sluice

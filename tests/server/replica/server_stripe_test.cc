#include "server/replica/server_stripe.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/pull_result.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kElements = 192;  // three units, of which units 0 and 2 are in the first stripe
constexpr uint64_t kHere = 128;

// The first of two stripes.
class ServerStripeTest : public ::testing::Test {
 protected:
  ServerStripeTest() { Open(stripe_, AdamOptions()); }

  static void Open(ServerStripe& stripe, const OptimizerOptions& optimizer) {
    OptimizerConfig config;
    config.options = optimizer;
    stripe.Open(std::make_shared<const Layout>(ParametersOnly(kElements)), config, {0, 2});
  }

  std::unique_ptr<PendingPush> Begin(uint64_t id, bool begins_sum = false) {
    PushHeader header;
    header.session = SessionId(id);
    return stripe_.Begin(PushId(id), header, std::make_shared<std::atomic<uint64_t>>(0),
                         begins_sum);
  }

  std::unique_ptr<PendingPush> Arrived(uint64_t id, float value, bool begins_sum = false) {
    auto push = Begin(id, begins_sum);
    EXPECT_THAT(push->Add(ChunkOf(0, Values(kHere, value))), IsOk());
    EXPECT_THAT(stripe_.End(*push, absl::OkStatus(), false).refused, IsOk());
    return push;
  }

  std::shared_ptr<const Snapshot> Start(uint64_t step = 4) {
    stripe_.Start(stripe_.MakeFirst(*Arrived(100, 3), Step(step)));
    return stripe_.latest();
  }

  static const float* Memory(const Snapshot& snapshot) { return snapshot.values.span().data(); }

  // Publishes a step that changes nothing, and returns its memory.
  const float* PublishCopy() {
    StepOrder copy;
    copy.kind = StepOrder::Kind::kCopy;
    stripe_.Carry(copy);
    stripe_.EndStep();
    stripe_.Publish().reset();
    return Memory(*stripe_.latest());
  }

  Serial serial_;
  ServerStripe stripe_{SnapshotMemory::kPrivate, serial_};
};

TEST_F(ServerStripeTest, HasNoSnapshotBeforeTheFirst) {
  EXPECT_EQ(stripe_.latest(), nullptr);
  Start();
  EXPECT_EQ(stripe_.latest()->step, Step(4));
  EXPECT_EQ(stripe_.latest()->values.size(), kHere);
  EXPECT_THAT(stripe_.latest()->values.span(), Each(3));
}

TEST_F(ServerStripeTest, APublishedStepFollowsTheLatestAndReturnsTheOneBefore) {
  const auto first = Start();
  StepOrder copy;
  copy.kind = StepOrder::Kind::kCopy;
  stripe_.Carry(copy);
  EXPECT_EQ(stripe_.latest(), first);
  EXPECT_EQ(stripe_.Publish(), first);
  EXPECT_EQ(stripe_.latest()->step, Step(5));
  EXPECT_THAT(stripe_.latest()->values.span(), Each(3));
}

TEST_F(ServerStripeTest, AStepIsMadeInTheMemoryInWhichItsFirstGradientArrived) {
  Start();
  auto push = Arrived(1, 2, /*begins_sum=*/true);
  ASSERT_NE(push->gradient().memory(), nullptr);
  const float* const lent = push->gradient().memory()->span().data();
  stripe_.Add(std::move(push), {}, /*last=*/false);
  EXPECT_EQ(PublishCopy(), lent);
}

TEST_F(ServerStripeTest, AStepThatAnotherGradientBeginsLeavesLentMemoryAlone) {
  Start();
  const auto lent = Arrived(1, 2, /*begins_sum=*/true);
  stripe_.Add(Arrived(2, 5), {}, /*last=*/false);
  EXPECT_NE(PublishCopy(), lent->gradient().memory()->span().data());
  EXPECT_THAT(lent->gradient().memory()->span(), Each(2));
}

TEST_F(ServerStripeTest, AStepWhoseOnlyGradientGoesToTheOptimizerLeavesLentMemoryAlone) {
  Start();
  auto push = Arrived(1, 2, /*begins_sum=*/true);
  const float* const lent = push->gradient().memory()->span().data();
  stripe_.Add(std::move(push), {}, /*last=*/true);
  EXPECT_NE(PublishCopy(), lent);
}

TEST_F(ServerStripeTest, LendsToOnePushAtATimeAndAgainIfItBreaksOff) {
  Start();
  auto first = Begin(1, /*begins_sum=*/true);
  EXPECT_NE(first->gradient().memory(), nullptr);
  EXPECT_EQ(Begin(2, /*begins_sum=*/true)->gradient().memory(), nullptr);
  first = nullptr;
  EXPECT_NE(Begin(2, /*begins_sum=*/true)->gradient().memory(), nullptr);
}

TEST_F(ServerStripeTest, LendsNothingOnceAStepHasBegun) {
  Start();
  stripe_.Add(Arrived(1, 2), {}, /*last=*/false);
  EXPECT_EQ(Begin(2, /*begins_sum=*/true)->gradient().memory(), nullptr);
}

TEST_F(ServerStripeTest, ReleasesAPullWithTheLatestParametersUnlessItsWorkerHasThem) {
  const auto first = Start();
  PullHeader header;
  header.step = Step(4);
  header.learning_rate = 0.5;
  const PullResult result = ReleasedPull(header, stripe_.latest());
  EXPECT_EQ(result.header.learning_rate, 0.5);
  EXPECT_EQ(result.snapshot, first);
  header.not_modified = true;
  EXPECT_EQ(ReleasedPull(header, stripe_.latest()).snapshot, nullptr);
}

TEST_F(ServerStripeTest, IsRestoredFromItsCheckpoint) {
  Start();
  StepOrder prepare;
  prepare.kind = StepOrder::Kind::kPrepare;
  prepare.optimizer.divisor = 1;
  prepare.optimizer.learning_rates = {0.5};
  StepOrder make;
  make.kind = StepOrder::Kind::kMake;
  stripe_.Add(Arrived(1, 2), {}, /*last=*/true);
  stripe_.Carry(prepare);
  stripe_.Carry(make);
  stripe_.EndStep();
  stripe_.Publish().reset();
  StripeCheckpoint saved = stripe_.Copy();
  EXPECT_EQ(saved.optimizer_steps, 1u);
  ASSERT_EQ(saved.slots.size(), 2u);
  EXPECT_THAT(saved.slots[0].values.span(), Each(::testing::Not(0)));

  ServerStripe restored(SnapshotMemory::kPrivate, serial_);
  Open(restored, AdamOptions());
  ASSERT_THAT(restored.Restore(saved, Step(5)), IsOk());
  EXPECT_EQ(restored.latest()->step, Step(5));
  EXPECT_EQ(ValuesOf(restored.latest()->values.span()), ValuesOf(stripe_.latest()->values.span()));
  const StripeCheckpoint again = restored.Copy();
  EXPECT_EQ(again.optimizer_steps, 1u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ValuesOf(again.slots[i].values.span()), ValuesOf(saved.slots[i].values.span()));
  }
}

TEST_F(ServerStripeTest, RefusesTheSlotsOfAnotherOptimizer) {
  Start();
  StripeCheckpoint saved = stripe_.Copy();
  saved.slots[0].name = "velocity";
  EXPECT_THAT(stripe_.Restore(saved, Step(5)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("by name")));
  saved.slots.pop_back();
  EXPECT_THAT(stripe_.Restore(saved, Step(5)),
              HasCode(absl::StatusCode::kDataLoss,
                      "the checkpoint has 1 optimizer slots; expected the 2 slots of its "
                      "optimizer, by name"));
}

}  // namespace
}  // namespace sluice

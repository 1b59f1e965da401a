#include "server/holder/holder.h"

#include <atomic>
#include <memory>
#include <utility>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// Holds one of two stripes of a vector of three units: units 0 and 2, or unit 1.
class HolderTest : public ::testing::Test {
 protected:
  explicit HolderTest(uint32_t stripe = 0) {
    const auto layout = std::make_shared<const Layout>(ParametersOnly(192));
    holder_.Open(layout, {SgdOptions()}, Stripes(layout->size(), 2), stripe);
  }

  std::shared_ptr<const Snapshot> PublishFirst(uint64_t step) {
    const std::shared_ptr<Snapshot> first = holder_.MakeFirst(Step(step));
    holder_.Publish(first);
    return first;
  }

  // Returns the memory of its gradient.
  std::weak_ptr<const void> Keep(uint64_t id) {
    auto push = std::make_unique<PendingPush>(PushId(id), PushHeader(), holder_.layout(),
                                              std::make_shared<std::atomic<uint64_t>>(0));
    TensorChunk chunk = ChunkOf(0, Values(128, 1));
    const std::weak_ptr<const void> memory = chunk.owner;
    push->Place(std::move(chunk));
    holder_.Keep(std::move(push));
    return memory;
  }

  Serial serial_;
  Holder holder_{SnapshotMemory::kPrivate, serial_};
};

TEST_F(HolderTest, HasNoSnapshotBeforeTheFirst) {
  EXPECT_EQ(holder_.latest(), nullptr);
  const auto first = PublishFirst(4);
  EXPECT_EQ(holder_.latest(), first);
  EXPECT_EQ(first->step, Step(4));
}

TEST_F(HolderTest, HasRoomForItsStripeAlone) {
  EXPECT_EQ(PublishFirst(0)->values.size(), 128u);
  const std::unique_ptr<StagedVector> offer = holder_.MakeOffer();
  EXPECT_THAT(offer->Add(ChunkOf(0, Values(128, 1))), IsOk());
  EXPECT_THAT(offer->CheckComplete(), IsOk());
}

TEST_F(HolderTest, KeepsGradientsUntilTheyAreTakenOrDropped) {
  const std::weak_ptr<const void> first = Keep(1);
  const std::weak_ptr<const void> second = Keep(2);
  EXPECT_EQ(holder_.Take(PushId(2))->id(), PushId(2));
  EXPECT_TRUE(second.expired());
  EXPECT_FALSE(first.expired());
  std::unique_ptr<PendingPush> dropped = holder_.Drop(PushId(1));
  EXPECT_EQ(holder_.Drop(PushId(1)), nullptr);
  EXPECT_FALSE(first.expired());
  dropped = nullptr;
  EXPECT_TRUE(first.expired());
}

TEST_F(HolderTest, BeginsAStepThatFollowsTheLatest) {
  const auto first = PublishFirst(4);
  SnapshotPair step = holder_.BeginStep();
  EXPECT_EQ(step.current, first);
  EXPECT_EQ(step.next->step, Step(5));
  EXPECT_EQ(holder_.latest(), first);
  EXPECT_EQ(holder_.BeginStep().next, step.next);
  holder_.Publish(step.next);
  EXPECT_EQ(holder_.latest(), step.next);
  EXPECT_EQ(holder_.BeginStep().current, step.next);
}

TEST_F(HolderTest, AStepBeginsInTheMemoryInWhichItsFirstGradientArrived) {
  PublishFirst(4);
  const std::shared_ptr<FloatBuffer> lent = holder_.LendNext(PushId(1));
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(lent->size(), 128u);
  const SnapshotPair step = holder_.BeginStep(PushId(1));
  EXPECT_EQ(&step.next->values, lent.get());
  EXPECT_EQ(step.next->step, Step(5));
}

TEST_F(HolderTest, AStepThatAnotherGradientBeginsLeavesLentMemoryAlone) {
  PublishFirst(4);
  const std::shared_ptr<FloatBuffer> lent = holder_.LendNext(PushId(1));
  EXPECT_NE(&holder_.BeginStep(PushId(2)).next->values, lent.get());
  EXPECT_NE(&holder_.BeginStep(PushId(1)).next->values, lent.get());
}

TEST_F(HolderTest, AStepWhoseOnlyGradientGoesToTheOptimizerLeavesLentMemoryAlone) {
  PublishFirst(4);
  const std::shared_ptr<FloatBuffer> lent = holder_.LendNext(PushId(1));
  EXPECT_NE(&holder_.BeginStep().next->values, lent.get());
}

TEST_F(HolderTest, LendsToOnePushAtATimeAndAgainIfItBreaksOff) {
  PublishFirst(4);
  std::shared_ptr<FloatBuffer> lent = holder_.LendNext(PushId(1));
  EXPECT_EQ(holder_.LendNext(PushId(2)), nullptr);
  lent = nullptr;
  lent = holder_.LendNext(PushId(2));
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(&holder_.BeginStep(PushId(2)).next->values, lent.get());
}

TEST_F(HolderTest, LendsNothingOnceAStepHasBegun) {
  PublishFirst(4);
  const SnapshotPair step = holder_.BeginStep();
  EXPECT_EQ(holder_.LendNext(PushId(1)), nullptr);
  holder_.Publish(step.next);
}

TEST_F(HolderTest, ReleasesAPullWithTheLatestParameters) {
  const auto first = PublishFirst(4);
  PullHeader header;
  header.step = Step(4);
  header.learning_rate = 0.5;
  const PullResult result = holder_.Release(header);
  EXPECT_EQ(result.header.learning_rate, 0.5);
  EXPECT_EQ(result.snapshot, first);
}

TEST_F(HolderTest, ReleasesAPullWithoutParametersThatItsWorkerHas) {
  PublishFirst(4);
  PullHeader header;
  header.not_modified = true;
  EXPECT_EQ(holder_.Release(header).snapshot, nullptr);
}

}  // namespace
}  // namespace sluice

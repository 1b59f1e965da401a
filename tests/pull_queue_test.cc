#include "server/pull_queue.h"

#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// A queue of a server in its second life, and letters for the pulls that were answered, in order.
class PullQueueTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Snapshot> At(uint64_t step) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->step = Step(step);
    snapshot->values = FloatBuffer(10);
    return snapshot;
  }

  PullId Wait(char name, uint64_t min_step, absl::optional<Step> have_step = absl::nullopt) {
    PullRequest request;
    request.min_step = Step(min_step);
    request.have_step = have_step;
    return queue_.Add(request, [this, name](absl::StatusOr<PullResult> result) {
      answered_ += name;
      last_ = std::move(result);
    });
  }

  std::string Publish(uint64_t step) {
    Completions completions;
    queue_.Publish(At(step), &completions);
    return Run(completions);
  }

  std::string Run(Completions& completions) {
    answered_.clear();
    completions.Run();
    return answered_;
  }

  PullQueue queue_{Incarnation(2)};
  absl::StatusOr<PullResult> last_;

 private:
  std::string answered_;
};

TEST_F(PullQueueTest, NumbersPullsFromOne) {
  EXPECT_EQ(Wait('a', 1), PullId(1));
  EXPECT_EQ(Wait('b', 1), PullId(2));
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(PullQueueTest, AnswersThoseThatAStepSatisfiesInTheOrderTheyCame) {
  Wait('a', 3);
  Wait('b', 1);
  Wait('c', 2);
  Wait('d', 1);
  EXPECT_EQ(Publish(0), "");
  EXPECT_EQ(Publish(2), "bcd");
  EXPECT_EQ(Publish(2), "");
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(Publish(9), "a");
}

TEST_F(PullQueueTest, AnswersWithTheSnapshotItsStepAndItsIncarnation) {
  Wait('a', 1);
  ASSERT_EQ(Publish(4), "a");
  ASSERT_TRUE(last_.ok());
  EXPECT_EQ(last_->header.step, Step(4));
  EXPECT_EQ(last_->header.incarnation, Incarnation(2));
  EXPECT_FALSE(last_->header.not_modified);
  EXPECT_EQ(last_->snapshot->step, Step(4));
  EXPECT_EQ(queue_.bytes_answered(), 40u);
}

TEST_F(PullQueueTest, AnswersNotModifiedWithoutASnapshotToThoseWhoHaveTheStep) {
  Wait('a', 4, Step(4));
  ASSERT_EQ(Publish(4), "a");
  ASSERT_TRUE(last_.ok());
  EXPECT_TRUE(last_->header.not_modified);
  EXPECT_EQ(last_->snapshot, nullptr);
  EXPECT_EQ(queue_.bytes_answered(), 0u);
}

TEST_F(PullQueueTest, FailsAllOfThem) {
  Wait('a', 3);
  Wait('b', 1000000);
  Completions completions;
  queue_.FailAll(MakeError(Reason::kDraining, "bye"), &completions);
  EXPECT_EQ(Run(completions), "ab");
  EXPECT_EQ(ReasonOf(last_.status()), Reason::kDraining);
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(PullQueueTest, CancelsOneThatWaitsOnce) {
  const PullId first = Wait('a', 1);
  Wait('b', 2);
  EXPECT_TRUE(queue_.Cancel(first));
  EXPECT_FALSE(queue_.Cancel(first));
  EXPECT_EQ(Publish(2), "b");
}

TEST_F(PullQueueTest, CancelsNoneThatWaitsNoMore) {
  const PullId answered = Wait('a', 1);
  Publish(1);
  EXPECT_FALSE(queue_.Cancel(answered));
  EXPECT_FALSE(queue_.Cancel(PullId()));
}

}  // namespace
}  // namespace sluice

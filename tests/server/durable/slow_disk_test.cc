// A disk that is slower than the workers: the journal's queue stays bounded, because pushes wait at
// their header, and training continues with every step that is on the disk.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/hooked_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

// A push whose start and answer may come later, on other threads.
struct SlowPush {
  absl::Notification started;
  absl::StatusOr<PushStart> start;
  absl::Notification answered;
  absl::StatusOr<PushOutcome> outcome;
};

class SlowDiskTest : public ::testing::Test {
 protected:
  SlowDiskTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "slow_disk");
    options_.durability = Durability::kJournal;
  }
  ~SlowDiskTest() override {
    Unblock();
    life_.reset();
  }

  // A job whose in-flight limit is that many gradients.
  void Start(ShardOptions shard, uint32_t limit, const std::vector<std::string>& workers) {
    shard.max_in_flight_bytes = limit * 3 * sizeof(float);
    life_.emplace(options_, files_, shard);
    life_->world().Start(workers);
  }

  std::shared_ptr<SlowPush> Begin(const std::string& name, uint64_t step) {
    auto push = std::make_shared<SlowPush>();
    life_->world().shard().store().BeginPush(life_->world().NextHeader(name, step),
                                             [push](auto start) {
                                               push->start = std::move(start);
                                               push->started.Notify();
                                             });
    return push;
  }

  // Sends the gradient of a push that was admitted.
  void Finish(SlowPush& push) {
    push.started.WaitForNotification();
    ASSERT_TRUE(push.start.ok() && push.start->push != nullptr) << push.start.status();
    EXPECT_THAT(push.start->push->Add(ChunkOf(0, Values{1, 1, 1})), IsOk());
    life_->world().shard().store().FinishPush(std::move(push.start->push),
                                              [&push](const auto& told) {
                                                push.outcome = told;
                                                push.answered.Notify();
                                              });
  }

  // From now on, no step gets to the disk, or no such file.
  void Block(const std::string& file = "/journal-") {
    absl::MutexLock lock(&mu_);
    file_ = file;
    blocked_ = true;
  }
  // What waits, and what follows, has this outcome.
  void Unblock(const absl::Status& outcome = absl::OkStatus()) {
    absl::MutexLock lock(&mu_);
    blocked_ = false;
    outcome_ = outcome;
  }

  absl::optional<Life> life_;

 private:
  absl::Status Ask(FileOperation operation, const std::string& path) {
    if (operation != FileOperation::kSync) return absl::OkStatus();
    absl::MutexLock lock(&mu_);
    if (!absl::StrContains(path, file_)) return absl::OkStatus();
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !blocked_; };
    mu_.Await(absl::Condition(&free));
    return outcome_;
  }

  absl::Mutex mu_;
  bool blocked_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status outcome_ ABSL_GUARDED_BY(mu_);
  std::string file_ ABSL_GUARDED_BY(mu_) = "/journal-";
  FaultyFiles disk_;
  HookedFiles files_{disk_, [this](FileOperation operation, const std::string& path) {
                       return Ask(operation, path);
                     }};
  DurableOptions options_;
};

// One place of the limit is reserved for the worker of the lowest rank.
TEST_F(SlowDiskTest, StepsThatAreNotOnTheDiskCountTowardsTheInFlightLimit) {
  const std::vector<std::string> workers = {"a", "b", "c", "d", "e", "f"};
  Start(Async(1), 5, workers);
  Block();
  std::vector<std::shared_ptr<SlowPush>> pushes;
  for (const std::string& worker : workers) {
    pushes.push_back(Begin(worker, 0));
    if (pushes.back()->started.HasBeenNotified()) Finish(*pushes.back());
  }
  EXPECT_EQ(life_->world().step(), 4u);
  for (size_t i = 0; i < pushes.size(); ++i) {
    EXPECT_EQ(pushes[i]->started.HasBeenNotified(), i < 4) << workers[i];
    EXPECT_FALSE(pushes[i]->answered.HasBeenNotified()) << workers[i];
  }
  EXPECT_THAT(life_->world().Pull(4).values(), ElementsAre(-4, -4, -4));
  EXPECT_EQ(life_->world().shard().Describe().counters.in_progress, 2u);

  Unblock();
  for (size_t i = 4; i < pushes.size(); ++i) Finish(*pushes[i]);
  for (const auto& push : pushes) {
    push->answered.WaitForNotification();
    EXPECT_THAT(push->outcome, IsOk());
  }
  EXPECT_THAT(life_->world().Parameters(), ElementsAre(-6, -6, -6));
}

// A worker that does not wait for its answers cannot fill the memory either.
TEST_F(SlowDiskTest, AWorkerThatDoesNotWaitForItsAnswersWaitsAtItsHeader) {
  Start(Async(1), 3, {"a"});
  Block();
  std::vector<std::shared_ptr<SlowPush>> pushes;
  for (uint64_t step : {0, 1, 2, 3}) {
    pushes.push_back(Begin("a", step));
    if (pushes.back()->started.HasBeenNotified()) Finish(*pushes.back());
  }
  EXPECT_EQ(life_->world().step(), 3u);
  EXPECT_FALSE(pushes[3]->started.HasBeenNotified());
  Unblock();
  Finish(*pushes[3]);
  pushes[3]->answered.WaitForNotification();
  EXPECT_THAT(pushes[3]->outcome, Applied(4));
}

// In rank order the gradients of later ranks wait for those of earlier ones.
TEST_F(SlowDiskTest, AStepInRankOrderIsMadeWhoeverComesFirst) {
  ShardOptions shard = Sync(3);
  shard.consistency.order = ReductionOrder::kRank;
  Start(shard, 3, {"a", "b", "c"});
  Block();
  std::vector<std::shared_ptr<SlowPush>> pushes;
  for (uint64_t step : {0, 1}) {
    for (const char* name : {"c", "b", "a"}) {
      pushes.push_back(Begin(name, step));
      if (pushes.back()->started.HasBeenNotified()) Finish(*pushes.back());
    }
    for (const auto& push : pushes) {
      if (push->started.HasBeenNotified() && push->start->push != nullptr) Finish(*push);
    }
  }
  Unblock();
  for (const auto& push : pushes) {
    push->started.WaitForNotification();
    if (push->start.ok() && push->start->push != nullptr) Finish(*push);
  }
  for (const auto& push : pushes) {
    push->answered.WaitForNotification();
    EXPECT_THAT(push->outcome, IsOk());
  }
  EXPECT_EQ(life_->world().step(), 2u);
}

TEST_F(SlowDiskTest, TheEndOfTrainingIsToldWhenItIsOnTheDisk) {
  Start(Async(1), 5, {"a", "b"});
  Shard& shard = life_->world().shard();
  Block("/checkpoint-");
  ASSERT_THAT(life_->world().Leave("b"), IsOk());
  absl::Notification first;
  shard.durability().WhenEndIsSaved([&](const absl::Status&) { first.Notify(); });
  EXPECT_TRUE(first.HasBeenNotified()) << "a has not left";
  ASSERT_THAT(life_->world().Leave("a"), IsOk());
  absl::Notification last;
  shard.durability().WhenEndIsSaved([&](const absl::Status&) { last.Notify(); });
  EXPECT_FALSE(last.HasBeenNotified());
  EXPECT_NE(shard.Describe().phase, Phase::kFinished);
  Unblock();
  last.WaitForNotification();
  EXPECT_TRUE(shard.Describe().end_is_saved);
  EXPECT_EQ(shard.Describe().phase, Phase::kFinished);
}

TEST_F(SlowDiskTest, AnEndThatCannotBeSavedIsToldAllTheSame) {
  Start(Async(1), 5, {"a"});
  Shard& shard = life_->world().shard();
  Block("/checkpoint-");
  ASSERT_THAT(life_->world().Leave("a"), IsOk());
  absl::Notification left;
  shard.durability().WhenEndIsSaved([&](const absl::Status&) { left.Notify(); });
  EXPECT_FALSE(left.HasBeenNotified());
  Unblock(absl::ResourceExhaustedError("no space"));
  left.WaitForNotification();
  EXPECT_FALSE(shard.Describe().end_is_saved) << "the server tries once more when it ends";
  EXPECT_EQ(shard.Describe().phase, Phase::kFinished);
}

TEST_F(SlowDiskTest, NobodyWaitsForTheEndOnAServerThatGoesDown) {
  Start(Async(1), 5, {"a"});
  Shard& shard = life_->world().shard();
  Block("/checkpoint-");
  ASSERT_THAT(life_->world().Leave("a"), IsOk());
  absl::Notification left;
  shard.durability().WhenEndIsSaved([&](const absl::Status&) { left.Notify(); });
  EXPECT_FALSE(left.HasBeenNotified());
  shard.durability().FailHeldAnswers(absl::UnavailableError("down"));
  EXPECT_TRUE(left.HasBeenNotified());
}

}  // namespace
}  // namespace sluice

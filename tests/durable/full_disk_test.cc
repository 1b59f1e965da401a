// A disk that is full: nothing is answered that is not kept, reads go on, and so does training once
// there is room again.

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/durable_directory.h"
#include "server/durable/revive.h"
#include "server/shard.h"
#include "tests/testing/faulty_files.h"
#include "tests/testing/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FullDiskTest : public ::testing::Test {
 protected:
  struct Answer {
    absl::Notification given;
    absl::StatusOr<PushOutcome> outcome;
  };

  FullDiskTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "full_disk");
    options_.durability = Durability::kJournal;
    Open();
  }

  void Open() {
    auto directory = DurableDirectory::Open(options_, files_);
    ASSERT_THAT(directory, IsOk());
    directory_ = *std::move(directory);
    ShardOptions options = Sync(1);
    options.incarnation = directory_->incarnation();
    world_ = std::make_unique<ShardWorld>(options);
    ASSERT_THAT(Revive(*directory_, world_->shard()), IsOk());
  }

  // Comes when its step is kept.
  std::shared_ptr<Answer> Push(uint64_t step) {
    auto push = world_->Begin("a", step);
    EXPECT_THAT(push->Add(ChunkOf(0, Values{1, 1, 1})), IsOk());
    auto answer = std::make_shared<Answer>();
    world_->shard().FinishPush(std::move(push), [answer](const auto& told) {
      answer->outcome = told;
      answer->given.Notify();
    });
    return answer;
  }

  // What a push is told at the door, once that is an error, or not any more.
  absl::Status AtTheDoor(uint64_t step, bool wants_error) {
    for (;;) {
      PushHeader header = world_->NextHeader("a", step);
      TestStart start = world_->BeginAs(header);
      if (start.let_in()) world_->shard().AbandonPush(start.Take(), Abandoned::kAborted);
      if (start.status().ok() != wants_error) return start.status();
    }
  }

  FaultyFiles files_;
  DurableOptions options_;
  std::unique_ptr<ShardWorld> world_;
  std::unique_ptr<DurableDirectory> directory_;  // ends first
};

TEST_F(FullDiskTest, NothingIsAnsweredThatIsNotKeptAndTrainingGoesOnWhenThereIsRoom) {
  world_->Start({"a"});
  const auto first = Push(0);
  first->given.WaitForNotification();
  EXPECT_THAT(first->outcome, IsOk());

  files_.SetRoom(20);
  const auto second = Push(1);
  EXPECT_THAT(AtTheDoor(2, true),
              IsError(Reason::kJournalStopped,
                      AllOf(HasSubstr("No space left"), HasSubstr("takes pushes again when"))));
  EXPECT_FALSE(second->given.HasBeenNotified());
  EXPECT_THAT(world_->Pull(2).values(), ElementsAre(-2, -2, -2));

  files_.SetRoom(absl::nullopt);
  second->given.WaitForNotification();
  EXPECT_THAT(second->outcome, IsOk());
  EXPECT_THAT(AtTheDoor(2, false), IsOk());
  const auto third = Push(2);
  third->given.WaitForNotification();

  // All of it is there.
  directory_ = nullptr;
  world_ = nullptr;
  Open();
  EXPECT_EQ(world_->step(), 3u);
  EXPECT_THAT(world_->Parameters(), ElementsAre(-3, -3, -3));
}

TEST_F(FullDiskTest, NothingIsAnsweredBeforeTheFirstCheckpointFits) {
  files_.SetRoom(100);
  world_->Start({"a"});
  const auto first = Push(0);
  EXPECT_FALSE(first->given.HasBeenNotified());
  files_.SetRoom(absl::nullopt);
  first->given.WaitForNotification();
  EXPECT_THAT(first->outcome, IsOk());
}

}  // namespace
}  // namespace sluice

// A full disk: no push is answered whose step is not durable, pulls continue, and training
// continues when there is space again.

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
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
    life_.emplace(options_, files_);
  }

  // Comes when its step is durable.
  std::shared_ptr<Answer> Push(uint64_t step) {
    auto push = life_->world().Begin("a", step);
    EXPECT_THAT(push->Add(ChunkOf(0, Values{1, 1, 1})), IsOk());
    auto answer = std::make_shared<Answer>();
    life_->world().shard().store().FinishPush(std::move(push), [answer](const auto& told) {
      answer->outcome = told;
      answer->given.Notify();
    });
    return answer;
  }

  // Begins pushes until the answer to the header is an error, or until it is none; returns it.
  absl::Status AtTheDoor(uint64_t step, bool wants_error) {
    for (;;) {
      PushHeader header = life_->world().NextHeader("a", step);
      TestStart start = life_->world().BeginAs(header);
      if (start.let_in())
        life_->world().shard().store().AbandonPush(start.Take(), Abandoned::kAborted);
      if (start.status().ok() != wants_error) return start.status();
    }
  }

  FaultyFiles files_;
  DurableOptions options_;
  absl::optional<Life> life_;
};

TEST_F(FullDiskTest, NothingIsAnsweredThatIsNotKeptAndTrainingGoesOnWhenThereIsRoom) {
  life_->world().Start({"a"});
  const auto first = Push(0);
  first->given.WaitForNotification();
  EXPECT_THAT(first->outcome, IsOk());

  files_.SetRoom(20);
  const auto second = Push(1);
  EXPECT_THAT(AtTheDoor(2, true),
              IsError(Reason::kJournalStopped,
                      AllOf(HasSubstr("No space left"), HasSubstr("takes pushes again when"))));
  EXPECT_FALSE(second->given.HasBeenNotified());
  EXPECT_THAT(life_->world().Pull(2).values(), ElementsAre(-2, -2, -2));

  files_.SetRoom(absl::nullopt);
  second->given.WaitForNotification();
  EXPECT_THAT(second->outcome, IsOk());
  EXPECT_THAT(AtTheDoor(2, false), IsOk());
  const auto third = Push(2);
  third->given.WaitForNotification();

  // All of it is there.
  life_.reset();
  life_.emplace(options_, files_);
  EXPECT_EQ(life_->world().step(), 3u);
  EXPECT_THAT(life_->world().Parameters(), ElementsAre(-3, -3, -3));
}

TEST_F(FullDiskTest, NothingIsAnsweredBeforeTheFirstCheckpointFits) {
  files_.SetRoom(100);
  life_->world().Start({"a"});
  const auto first = Push(0);
  EXPECT_FALSE(first->given.HasBeenNotified());
  files_.SetRoom(absl::nullopt);
  first->given.WaitForNotification();
  EXPECT_THAT(first->outcome, IsOk());
}

}  // namespace
}  // namespace sluice

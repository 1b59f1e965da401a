// Checkpoints of a server whose training seems to diverge, and how it is continued.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/save_checkpoint.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class SuspectTrainingTest : public ::testing::Test {
 protected:
  SuspectTrainingTest() { options_.directory = absl::StrCat(::testing::TempDir(), "suspect"); }

  static void PushLosses(Life& life, int count, float loss) {
    for (int i = 0; i < count; ++i) {
      ShardWorld& world = life.world();
      PushHeader header = world.NextHeader("a", world.step());
      header.incarnation = life.directory().incarnation();
      header.loss = loss;
      auto push = world.BeginAs(header).Take();
      ASSERT_THAT(push->Add(ChunkOf(0, Values{0, 0, 0})), IsOk());
      absl::Notification told;
      world.shard().store().FinishPush(std::move(push), [&told](const auto&) { told.Notify(); });
      told.WaitForNotification();
    }
  }
  static void Save(Life& life) {
    ASSERT_THAT(SaveCheckpointAndWait(life.world().shard(), life.directory()), IsOk());
  }
  // Is good up to step 400, and then bad up to step 480. Saves checkpoints of both.
  static void Diverge(Life& life) {
    life.world().Start({"a"});
    PushLosses(life, 100, 2.3F);
    PushLosses(life, 290, 0.3F);
    Save(life);
    PushLosses(life, 10, 0.3F);
    for (int i = 0; i < 4; ++i) {
      PushLosses(life, 20, 7);
      Save(life);
    }
  }

  std::vector<std::string> Checkpoints() {
    std::vector<std::string> found;
    const auto names = files_.List(options_.directory);
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, "checkpoint-")) found.push_back(name.substr(11, 19));
    }
    return found;
  }

  FaultyFiles files_;
  DurableOptions options_;
};

TEST_F(SuspectTrainingTest, TheCheckpointFromBeforeStaysUntilTrainingIsFine) {
  Life life(options_, files_);
  Diverge(life);
  EXPECT_THAT(Checkpoints(), ElementsAre("000001-000000000390", "000001-000000000440",
                                         "000001-000000000460", "000001-000000000480"));
  EXPECT_THAT(life.directory().saver().NewestBefore(Step(401)), HasSubstr("000001-000000000390"));
  EXPECT_EQ(life.directory().saver().NewestBefore(Step(391)), "");
  PushLosses(life, 30, 0.3F);
  Save(life);
  EXPECT_THAT(Checkpoints(),
              ElementsAre("000001-000000000460", "000001-000000000480", "000001-000000000510"));
}

TEST_F(SuspectTrainingTest, AServerThatContinuesKeepsItToo) {
  Diverge(*std::make_unique<Life>(options_, files_));
  Life life(options_, files_);
  ASSERT_THAT(life.world().Restart("a"), IsOk());
  Save(life);
  EXPECT_THAT(Checkpoints(), ElementsAre("000001-000000000390", "000001-000000000460",
                                         "000001-000000000480", "000002-000000000480"));
  EXPECT_THAT(life.world().shard().Describe().warnings, IsEmpty());
  PushLosses(life, 147, 7);
  const auto warnings = life.world().shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].text,
              StartsWith("training diverges since step 481: the loss is 7, but "));
}

TEST_F(SuspectTrainingTest, AServerContinuesFromBeforeIfTheLaterOnesAreRemoved) {
  Diverge(*std::make_unique<Life>(options_, files_));
  for (const std::string& name : Checkpoints()) {
    if (name == "000001-000000000390") continue;
    const std::string path = absl::StrCat(options_.directory, "/checkpoint-", name, ".safetensors");
    ASSERT_THAT(files_.Remove(path), IsOk());
  }
  Life life(options_, files_);
  EXPECT_EQ(life.world().step(), 390u);
  ASSERT_THAT(life.world().Restart("a"), IsOk());
  PushLosses(life, 200, 0.3F);
  EXPECT_THAT(life.world().shard().Describe().warnings, IsEmpty());
}

TEST_F(SuspectTrainingTest, AServerThatGoesBackLeavesNothingOfTheStepsSince) {
  options_.durability = Durability::kJournal;
  {
    Life life(options_, files_);
    Diverge(life);
    const auto before = life.directory().saver().FindWayBack(Step(401));
    ASSERT_TRUE(before.has_value());
    ASSERT_THAT(life.directory().GoBackTo(*before), IsOk());
  }
  const auto names = files_.List(options_.directory);
  EXPECT_THAT(*names, ElementsAre("checkpoint-000001-000000000390.safetensors",
                                  "life-000001-000000000000", "reached"));
  Life life(options_, files_);
  EXPECT_EQ(life.world().step(), 390u);
  ASSERT_THAT(life.world().Restart("a"), IsOk());
  PushLosses(life, 10, 0.3F);
  EXPECT_EQ(life.world().step(), 400u);
}

TEST_F(SuspectTrainingTest, TheJournalOfAnEarlierServerIsRemovedToo) {
  options_.durability = Durability::kJournal;
  Diverge(*std::make_unique<Life>(options_, files_));
  options_.durability = Durability::kMemory;
  {
    Life life(options_, files_);
    ASSERT_THAT(life.directory().GoBackTo(*life.directory().saver().FindWayBack(Step(401))),
                IsOk());
  }
  Life life(options_, files_);
  EXPECT_EQ(life.world().step(), 390u);
}

// To continue from there, the journal is removed.
TEST_F(SuspectTrainingTest, NoJournalIsKeptForTheCheckpointFromBefore) {
  options_.durability = Durability::kJournal;
  options_.keep_checkpoints = 1;
  Life life(options_, files_);
  Diverge(life);
  life.directory().FlushJournal();
  std::vector<std::string> segments;
  const auto names = files_.List(options_.directory);
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, "journal-")) segments.push_back(name);
  }
  for (const std::string& name : segments) EXPECT_GE(name, "journal-000001-000000000460");
}

}  // namespace
}  // namespace sluice

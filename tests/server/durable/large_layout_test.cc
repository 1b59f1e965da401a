// A server of a hundred thousand tensors comes back from its checkpoint and its journal.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/save_checkpoint.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

TEST(LargeLayoutTest, ComesBackWithAHundredThousandTensors) {
  DurableOptions options;
  options.directory = absl::StrCat(::testing::TempDir(), "large");
  const Layout layout = ManyTensors(100000);
  FaultyFiles files;
  Values trained;
  {
    Life life(options, files, Sync(1), nullptr, layout, AdamOptions());
    life.world().Start({"a"});
    EXPECT_THAT(life.world().Push("a", 0, Values(layout.size(), 1)), Applied(1));
    trained = life.world().Parameters();
    EXPECT_THAT(SaveCheckpointAndWait(life.world().shard(), life.directory()), IsOk());
  }
  EXPECT_NE(trained, Values(layout.size()));
  Life life(options, files, Sync(1), nullptr, layout, AdamOptions());
  EXPECT_EQ(life.world().shard().layout()->ranges(), layout.ranges());
  EXPECT_EQ(life.world().step(), 1u);
  EXPECT_TRUE(life.world().Parameters() == trained);
  // The optimizer has its slots, too.
  ASSERT_THAT(life.world().Restart("a"), IsOk());
  ShardWorld other(Sync(1), layout, AdamOptions());
  other.Start({"a"});
  EXPECT_THAT(other.Push("a", 0, Values(layout.size(), 1)), Applied(1));
  const auto pushed = life.world().Push("a", 1, Values(layout.size(), 2));
  ASSERT_THAT(pushed, IsOk());
  EXPECT_EQ(pushed->disposition, Disposition::kApplied);
  EXPECT_THAT(other.Push("a", 1, Values(layout.size(), 2)), Applied(2));
  EXPECT_TRUE(life.world().Parameters() == other.Parameters());
}

TEST(LargeLayoutTest, MakesTheJournaledStepOfAHundredThousandTensorsAgain) {
  DurableOptions options;
  options.directory = absl::StrCat(::testing::TempDir(), "journaled");
  options.durability = Durability::kJournal;
  const Layout layout = ManyTensors(100000);
  FaultyFiles files;
  Values trained;
  {
    Life life(options, files, Sync(1), nullptr, layout, AdamOptions());
    life.world().Start({"a"});
    auto push = life.world().Begin("a", 0);
    EXPECT_THAT(push->Add(ChunkOf(0, Values(layout.size(), 1))), IsOk());
    absl::Notification told;
    life.world().shard().store().FinishPush(std::move(push),
                                            [&told](const auto&) { told.Notify(); });
    told.WaitForNotification();
    trained = life.world().Parameters();
  }
  Life life(options, files, Sync(1), nullptr, layout, AdamOptions());
  EXPECT_EQ(life.world().step(), 1u);
  EXPECT_TRUE(life.world().Parameters() == trained);
}

}  // namespace
}  // namespace sluice

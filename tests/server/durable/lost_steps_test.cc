// What a crash costs is told, to the step.

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/reached_step.h"
#include "server/durable/save_checkpoint.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

void Train(ShardWorld& world, uint64_t from, uint64_t to) {
  for (uint64_t step = from; step < to; ++step) {
    EXPECT_THAT(world.Push("a", step, {1, 1, 1}), IsOk());
  }
}

class LostStepsTest : public ::testing::Test {
 protected:
  LostStepsTest() { options_.directory = absl::StrCat(::testing::TempDir(), "lost_steps"); }

  // Which ends 7 steps after its checkpoint of step 10.
  void LiveOnce() {
    Life life(options_, files_);
    life.world().Start({"a"});
    Train(life.world(), 0, 10);
    EXPECT_THAT(SaveCheckpointAndWait(life.world().shard(), life.directory()), IsOk());
    Train(life.world(), 10, 17);
  }

  FaultyFiles files_;
  DurableOptions options_;
};

TEST_F(LostStepsTest, AreToldToWorkersAndToPeople) {
  LiveOnce();
  Life second(options_, files_);
  EXPECT_EQ(second.world().step(), 10u);
  EXPECT_EQ(second.world().shard().Describe().lost_steps, 7u);
  const auto welcome = second.world().Join("a");
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->lost_steps, 7u);
}

TEST_F(LostStepsTest, OfAnEarlierLifeAreNotToldTwice) {
  LiveOnce();
  { const Life second(options_, files_); }  // made no step of its own
  Life third(options_, files_);
  EXPECT_EQ(third.world().shard().Describe().lost_steps, 0u);
}

TEST(ReachedStepTest, IsTheOneThatWasNotedLast) {
  FaultyFiles files;
  {
    ReachedStep reached(files, "disk/reached");
    EXPECT_EQ(reached.Read(), Step(0));
    reached.Begin(Step(5));
    EXPECT_EQ(reached.Read(), Step(5));
    for (uint64_t step = 6; step <= 300'000; ++step) reached.Note(Step(step));
  }
  ReachedStep later(files, "disk/reached");
  EXPECT_EQ(later.Read(), Step(300'000));
  later.Begin(Step(290'000));
  EXPECT_EQ(later.Read(), Step(290'000));
}

}  // namespace
}  // namespace sluice

// What a shard says about gradients that are dropped.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DroppedGradientsTest, ABoundThatDropsMostGradientsIsAWarning) {
  ShardWorld world(Bounded(1, 0));
  world.Start({"a"});
  for (int i = 0; i < 100; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  const auto warnings = world.shard().Describe().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].kind, WarningKind::kGradientsDropped);
  EXPECT_THAT(warnings[0].text, HasSubstr("older than --max-staleness; raise it"));
}

TEST(DroppedGradientsTest, GradientsThatAnotherModeDroppedAreNotHeldAgainstABound) {
  ShardWorld world(Backup(1, 2));
  world.Start({"a", "b"});
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
    ASSERT_THAT(world.Push("b", now, {0, 0, 0}), Stale(now + 1, 1));
  }
  ASSERT_THAT(ChangeConsistency(world.shard(), Bounded(1, 0).consistency), IsOk());
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = world.step();
    ASSERT_THAT(world.Push("a", now, {0, 0, 0}), Applied(now + 1));
  }
  EXPECT_THAT(world.shard().Describe().warnings, IsEmpty());
}

}  // namespace
}  // namespace sluice

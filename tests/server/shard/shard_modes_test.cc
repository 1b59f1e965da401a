// Reads that may be inconsistent, in async mode. tests/scripts/modes.txt has what else differs
// between the modes.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/shard_world.h"

namespace sluice {
namespace {

TEST(AsyncModeTest, PullsAreInconsistentIfAskedTo) {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  ShardWorld world(options);
  world.Start({"a"});
  EXPECT_TRUE(world.Pull(0).result()->header.inconsistent);
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_TRUE(world.GoOn("a").result()->header.inconsistent);
  EXPECT_EQ(world.shard().store().stripe().newest(3), world.shard().store().stripe().latest());
  EXPECT_EQ(world.shard().store().stripe().newest(3)->step, Step(1));
}

TEST(AsyncModeTest, PullsAreConsistentUnlessAskedOtherwise) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  EXPECT_FALSE(world.Pull(0).result()->header.inconsistent);
}

}  // namespace
}  // namespace sluice

// A session is replaced in the moment in which its push ends: the call's memory must outlive the
// cancellation. AddressSanitizer tells if it does not.

#include <thread>

#include "absl/synchronization/barrier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

// Evicts the session through the shard, on a thread of its own, while the client breaks the push.
TEST(PushCancelTest, ASessionThatEndsAsItsPushEndsFreesNothingThatIsInUse) {
  constexpr int kRounds = 300;
  ShardOptions options = Sync(1);
  ServerWorld world(options);
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_THAT(world.Join("a"), IsOk());
    if (round == 0) ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
    const auto push = world.OpenPush();
    ASSERT_TRUE(push->Write(HeaderOf(world.NextHeader("a", 0))));
    ASSERT_TRUE(
        world.Await([&world] { return world.shard().Describe().counters.in_progress == 1; }));
    auto* const together = new absl::Barrier(2);
    const auto begin = [together] {
      if (together->Block()) delete together;
    };
    std::thread operator_thread([&world, &begin] {
      begin();
      EXPECT_THAT(world.Evict("a"), IsOk());
    });
    begin();
    push->Cancel();
    operator_thread.join();
    EXPECT_FALSE(push->Answer().ok());
  }
}

}  // namespace
}  // namespace sluice

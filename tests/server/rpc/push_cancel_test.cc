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

// The worker joins again on a thread of its own, while the client breaks the push.
TEST(PushCancelTest, ASessionThatIsReplacedAsItsPushEndsFreesNothingThatIsInUse) {
  constexpr uint64_t kRounds = 300;
  ServerWorld world(Sync(1));
  const v1::JoinRequest request = world.RequestOf("a");
  ASSERT_THAT(world.JoinAs(request), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const auto push = world.OpenPush();
    ASSERT_TRUE(push->Write(HeaderOf(world.NextHeader("a", 0))));
    ASSERT_TRUE(
        world.Await([&world] { return world.shard().Describe().counters.in_progress == 1; }));
    auto* const together = new absl::Barrier(2);
    const auto begin = [together] {
      if (together->Block()) delete together;
    };
    std::thread successor([&world, &request, &begin] {
      begin();
      EXPECT_THAT(world.JoinAs(request), IsOk());
    });
    begin();
    push->Cancel();
    successor.join();
    EXPECT_FALSE(push->Answer().ok());
  }
}

}  // namespace
}  // namespace sluice

// Calls to a shard while its arithmetic runs.

#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_client.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

// Arithmetic that calls a function in its middle.
class Interrupted final : public Parallel {
 public:
  explicit Interrupted(const std::function<void()>& interruption) : interruption_(interruption) {}

  void For(size_t count, absl::FunctionRef<void(size_t)> part) override {
    interruption_();
    for (size_t i = 0; i < count; ++i) part(i);
  }

 private:
  const std::function<void()>& interruption_;
};

// A worker may overwrite its last gradient once it has the parameters to continue.
TEST(ShardAccumulatingTest, NobodyGoesOnWhileTheGradientIsStillRead) {
  FakeClock clock;
  std::function<void()> interruption = [] {};
  Shard shard(Async(2), clock, nullptr, std::make_unique<Interrupted>(interruption));
  JoinRequest join;
  join.worker = "a";
  join.process_nonce = ProcessNonce(1);
  join.layout = ParametersOnly(1);
  join.optimizer.options = PlainSgd();
  const auto welcome = shard.Join(join, nullptr);
  ASSERT_THAT(welcome, IsOk());
  auto offer = shard.store().BeginInitialize(welcome->session);
  ASSERT_THAT(offer, IsOk());
  const float zero = 0;
  TensorChunk chunk;
  chunk.pieces.push_back(AsPiece({&zero, 1}));
  ASSERT_THAT(offer->parameters->Add(chunk), IsOk());
  ASSERT_THAT(FinishOffer(shard, std::move(offer->parameters)), IsOk());

  PullRequest go_on;
  go_on.session = welcome->session;
  go_on.after = Sequence(1);
  Answer<PullResult> pulled;
  Answer<PushOutcome> pushed;
  ShardClient client(shard, welcome->session);
  int interruptions = 0;
  interruption = [&] {
    if (interruptions++ > 0) return;
    shard.store().Pull(go_on, pulled.Callback());
    EXPECT_EQ(pulled.calls(), 0);
  };
  pushed = client.Push(0, 1);
  EXPECT_EQ(interruptions, 1);
  EXPECT_THAT(pushed.Wait(), Accepted(0));
  EXPECT_EQ(pulled.calls(), 1);
  EXPECT_THAT(pulled.Wait(), IsOk());
  ASSERT_THAT(shard.Leave(welcome->session, {}), IsOk());
}

}  // namespace
}  // namespace sluice

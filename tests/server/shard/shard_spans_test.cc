// What a shard tells ShardOptions::on_span. Time passes only where a test says so.

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "gmock/gmock.h"
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

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string NameOf(ServerSpan span) {
  switch (span) {
    case ServerSpan::kStep:
      return "step";
    case ServerSpan::kWait:
      return "wait";
    case ServerSpan::kAccumulate:
      return "accumulate";
    case ServerSpan::kApply:
      return "apply";
    case ServerSpan::kPublish:
      return "publish";
    case ServerSpan::kEncode:
      return "encode";
    case ServerSpan::kJournalSync:
      return "journal sync";
  }
  return "?";
}

class ShardSpansTest : public ::testing::Test {
 protected:
  ShardOptions Heard(ShardOptions options) {
    options.on_span = [this](ServerSpan span, absl::Duration length) {
      heard_.push_back(absl::StrCat(NameOf(span), " ", absl::ToInt64Seconds(length)));
    };
    return options;
  }

  std::vector<std::string> Take() { return std::exchange(heard_, {}); }

  std::vector<std::string> heard_;
};

TEST_F(ShardSpansTest, AStepWaitsFromItsFirstGradientToItsLast) {
  ShardWorld world(Heard(Sync(2)));
  world.Start({"a", "b"});
  world.clock().Advance(absl::Seconds(7));  // before the first gradient
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  EXPECT_THAT(Take(), IsEmpty());
  world.clock().Advance(absl::Seconds(2));
  EXPECT_THAT(world.Push("b", 0, {1, 2, 3}), IsOk());
  EXPECT_THAT(Take(), ElementsAre("wait 2", "accumulate 0", "apply 0", "publish 0", "step 2"));
}

TEST_F(ShardSpansTest, AStepLastsSinceTheOneBefore) {
  ShardWorld world(Heard(Async(1)));
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  Take();
  world.clock().Advance(absl::Seconds(3));
  EXPECT_THAT(world.Push("a", 1, {1, 2, 3}), IsOk());
  EXPECT_THAT(Take(), ElementsAre("wait 0", "accumulate 0", "apply 0", "publish 0", "step 3"));
}

TEST_F(ShardSpansTest, GivingTheAnswersIsPartOfPublishing) {
  ShardWorld world(Heard(Async(1)));
  world.Start({"a"});
  auto push = world.Begin("a", 0);
  EXPECT_THAT(push->Add(ChunkOf(0, {1, 2, 3})), IsOk());
  world.shard().store().FinishPush(std::move(push),
                                   [&](const auto&) { world.clock().Advance(absl::Seconds(4)); });
  EXPECT_THAT(Take(), ElementsAre("wait 0", "accumulate 0", "apply 0", "publish 4", "step 4"));
}

// Each pass over a vector takes a second.
class SlowArithmetic final : public Parallel {
 public:
  explicit SlowArithmetic(FakeClock& clock) : clock_(clock) {}
  void For(size_t count, absl::FunctionRef<void(size_t)> part) override {
    Serial().For(count, part);
    clock_.Advance(absl::Seconds(1));
  }

 private:
  FakeClock& clock_;
};

TEST_F(ShardSpansTest, AccumulatingIsTheSumOfAllGradientsButTheLast) {
  FakeClock clock;
  Shard shard(Heard(Sync(3)), clock, nullptr, std::make_unique<SlowArithmetic>(clock));
  std::deque<ShardClient> workers;
  for (const char* name : {"a", "b", "c"}) {
    JoinRequest join;
    join.worker = name;
    join.process_nonce = ProcessNonce(workers.size() + 1);
    join.layout = ParametersOnly(3);
    join.optimizer.options = PlainSgd();
    workers.emplace_back(shard, shard.Join(join, nullptr).value().session);
  }
  auto offer = shard.store().BeginInitialize(shard.Sessions()[0].session);
  EXPECT_THAT(offer->parameters->Add(ChunkOf(0, {0, 0, 0})), IsOk());
  EXPECT_THAT(FinishOffer(shard, std::move(offer->parameters)), IsOk());
  for (ShardClient& worker : workers) worker.Push(0, 1);
  // The step first measures the norm, and then writes.
  EXPECT_THAT(Take(), ElementsAre("wait 2", "accumulate 2", "apply 2", "publish 0", "step 4"));
}

}  // namespace
}  // namespace sluice

// What a shard gives its executors, and what it does on the calling thread meanwhile.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/error.h"
#include "common/base/parallel.h"
#include "common/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_client.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kSmall = kPartElements;
constexpr uint32_t kLarge = kPartElements + 1;

// A shard whose steps, checks of norms and hooks wait until the test lets them run.
class ShardExecutorsTest : public ::testing::Test {
 protected:
  void Make(uint32_t elements, const ShardOptions& options = Sync(1)) {
    elements_ = elements;
    Executors executors = Executors::Inline();
    executors.steps = Hold(&steps_);
    executors.arrivals = Hold(&arrivals_);
    executors.hooks = Hold(&hooks_);
    shard_ =
        std::make_unique<Shard>(options, clock_, nullptr, nullptr, nullptr, std::move(executors));
  }

  static std::unique_ptr<Executor> Hold(HeldExecutor** held) {
    auto executor = std::make_unique<HeldExecutor>();
    *held = executor.get();
    return executor;
  }

  absl::StatusOr<Welcome> Join(const std::string& name) {
    JoinRequest join;
    join.worker = name;
    join.process_nonce = ProcessNonce(++nonces_);
    join.layout = ParametersOnly(elements_);
    join.optimizer.options = PlainSgd();
    return shard_->Join(join, nullptr);
  }

  // A worker that has joined, and has made the parameters 0.
  ShardClient Start() {
    const auto welcome = Join("a");
    EXPECT_THAT(welcome, IsOk());
    auto offer = shard_->store().BeginInitialize(welcome->session);
    EXPECT_THAT(offer, IsOk());
    EXPECT_THAT(offer->parameters->Add(ChunkOf(0, Values(elements_, 0))), IsOk());
    EXPECT_THAT(FinishOffer(*shard_, std::move(offer->parameters)), IsOk());
    session_ = welcome->session;
    for (HeldExecutor* const held : {steps_, arrivals_, hooks_}) {
      if (held != nullptr) held->Hold();
    }
    return {*shard_, session_};
  }

  float FirstParameter() const { return shard_->store().stripe().latest()->values.span()[0]; }

  FakeClock clock_;
  uint32_t elements_ = 0;
  uint64_t nonces_ = 0;
  SessionId session_;
  HeldExecutor* steps_ = nullptr;
  HeldExecutor* arrivals_ = nullptr;
  HeldExecutor* hooks_ = nullptr;
  std::unique_ptr<Shard> shard_;
};

TEST_F(ShardExecutorsTest, AStepOfALargeModelIsMadeByTheExecutor) {
  Make(kLarge);
  ShardClient worker = Start();
  const auto pushed = worker.Push(0, 2);
  EXPECT_EQ(pushed.calls(), 0);
  EXPECT_EQ(steps_->waiting(), 1u);
  EXPECT_EQ(shard_->Describe().step, Step(0));
  EXPECT_TRUE(steps_->RunNext());
  EXPECT_THAT(pushed.Wait(), Applied(1));
  EXPECT_EQ(FirstParameter(), -2);
  EXPECT_EQ(steps_->waiting(), 0u);
}

TEST_F(ShardExecutorsTest, TellsHowManyTasksEachExecutorHas) {
  Make(kLarge);
  ShardClient worker = Start();
  const auto pushed = worker.Push(0, 2);
  using Tasks = std::map<std::string, size_t>;
  EXPECT_EQ(shard_->store().executors().Tasks(),
            (Tasks{{"arrive", 0}, {"encode", 0}, {"hook", 0}, {"step", 1}, {"summary", 0}}));
  EXPECT_TRUE(steps_->RunNext());
  EXPECT_EQ(shard_->store().executors().Tasks()["step"], 0u);
}

TEST_F(ShardExecutorsTest, AStepOfASmallModelIsMadeByTheThreadThatBringsItsLastGradient) {
  Make(kSmall);
  ShardClient worker = Start();
  EXPECT_THAT(worker.Push(0, 2).Wait(), Applied(1));
  EXPECT_EQ(steps_->waiting(), 0u);
}

TEST_F(ShardExecutorsTest, AStepThatIsNotedInAFileIsMadeByTheExecutor) {
  Make(1);
  std::vector<uint64_t> noted;
  shard_->durability().SetStepListener([&](Step step) { noted.push_back(step.value()); });
  ShardClient worker = Start();
  const auto pushed = worker.Push(0, 2);
  EXPECT_THAT(noted, IsEmpty());
  EXPECT_EQ(pushed.calls(), 0);
  steps_->Release();
  EXPECT_THAT(noted, ElementsAre(1));
  EXPECT_THAT(pushed.Wait(), Applied(1));
}

TEST_F(ShardExecutorsTest, AWorkerKeepsItsPlaceAndOthersJoinWhileAStepIsHeldUp) {
  Make(kLarge, Async(1));
  ShardClient worker = Start();
  const auto pushed = worker.Push(0, 2);
  for (int second = 0; second < 60; ++second) {
    clock_.Advance(absl::Seconds(1));
    EXPECT_THAT(shard_->Heartbeat(session_), IsOkAndHolds(Step(0)));
    shard_->Tick();
  }
  EXPECT_THAT(Join("b"), IsOk());
  EXPECT_EQ(shard_->Describe().workers, 2u);
  EXPECT_EQ(steps_->waiting(), 1u);
  steps_->Release();
  EXPECT_THAT(pushed.Wait(), Applied(1));
}

TEST_F(ShardExecutorsTest, HasOneTaskForAllThatIsDue) {
  Make(kLarge, Async(1));
  ShardClient worker = Start();
  const auto first = worker.Push(0, 1);
  const auto second = worker.Push(0, 1);
  shard_->durability().TakeCheckpoint([](const auto& taken) { EXPECT_THAT(taken, IsOk()); });
  EXPECT_EQ(steps_->waiting(), 1u);
  EXPECT_TRUE(steps_->RunNext());
  EXPECT_THAT(first.Wait(), Applied(1));
  EXPECT_THAT(second.Wait(), Applied(2, 1));
  EXPECT_EQ(steps_->waiting(), 0u);
}

TEST_F(ShardExecutorsTest, TheNormOfALargeGradientIsMeasuredByTheExecutor) {
  ShardOptions options = Sync(1);
  options.guards.max_push_norm = 1;
  Make(kLarge, options);
  ShardClient worker = Start();
  const auto pushed = worker.Push(0, 2);
  EXPECT_EQ(pushed.calls(), 0);
  EXPECT_TRUE(arrivals_->RunNext());
  EXPECT_THAT(pushed.Wait().status(), IsError(Reason::kNormTooLarge, ::testing::_));
  EXPECT_EQ(shard_->Describe().counters.rejected, 1u);
}

// The step is made and other calls are answered; only the push's answer waits.
TEST_F(ShardExecutorsTest, AHookThatBlocksHoldsUpOnlyTheAnswerOfItsPush) {
  std::vector<std::string> told;
  ShardOptions options = Sync(1);
  options.on_attachments = [&](const std::string& worker, Step step, const Attachments& list) {
    told.push_back(absl::StrCat(worker, " at ", step.value(), ": ", list[0].type));
  };
  Make(3, options);
  Start();
  PushHeader header;
  header.session = session_;
  header.sequence = Sequence(1);
  header.incarnation = Incarnation(1);
  header.attachments = std::make_shared<const Attachments>(Attachments{{"loss", "1"}});
  Answer<PushOutcome> pushed;
  shard_->store().BeginPush(header, [&](absl::StatusOr<PushStart> start) {
    ASSERT_THAT(start, IsOk());
    ASSERT_THAT(start->push->Add(ChunkOf(0, {2, 2, 2})), IsOk());
    shard_->store().FinishPush(std::move(start->push), pushed.Callback());
  });
  EXPECT_EQ(shard_->Describe().step, Step(1));
  EXPECT_THAT(shard_->Heartbeat(session_), IsOkAndHolds(Step(1)));
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(pushed.calls(), 0);
  EXPECT_TRUE(hooks_->RunNext());
  EXPECT_THAT(told, ElementsAre("a at 0: loss"));
  EXPECT_THAT(pushed.Wait(), Applied(1));
}

TEST_F(ShardExecutorsTest, AnOfferWhoseSessionEndsBeforeItIsTakenIsRefused) {
  Make(3);
  arrivals_->Hold();
  const SessionId session = Join("a").value().session;
  auto offer = shard_->store().BeginInitialize(session);
  ASSERT_THAT(offer, IsOk());
  ASSERT_THAT(offer->parameters->Add(ChunkOf(0, {2, 2, 2})), IsOk());
  Answer<InitializeOutcome> offered;
  shard_->store().FinishInitialize(std::move(offer->parameters), offered.Callback());
  ASSERT_THAT(shard_->Leave(session, {}), IsOk());
  EXPECT_TRUE(arrivals_->RunNext());
  EXPECT_THAT(offered.Wait().status(), IsError(Reason::kUnknownSession, ::testing::_));
  EXPECT_EQ(shard_->store().stripe().latest(), nullptr);
}

TEST_F(ShardExecutorsTest, AShardThatIsDestroyedFirstDoesTheWorkThatWaits) {
  Executors executors = Executors::OnThreads();
  Executor* const steps = executors.steps.get();
  elements_ = kLarge;
  shard_ =
      std::make_unique<Shard>(Sync(1), clock_, nullptr, nullptr, nullptr, std::move(executors));
  ShardClient worker = Start();
  absl::Notification may_go_on;
  steps->Run([&] { may_go_on.WaitForNotification(); });
  const auto pushed = worker.Push(0, 2);
  EXPECT_EQ(pushed.calls(), 0);
  may_go_on.Notify();
  shard_ = nullptr;
  EXPECT_EQ(pushed.calls(), 1);
  EXPECT_THAT(pushed.Wait(), Applied(1));
}

}  // namespace
}  // namespace sluice

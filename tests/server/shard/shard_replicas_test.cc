// What a shard tells the replica on another server, and what it does with its reports.

#include <zlib.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/replica.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/outcome.h"
#include "tests/testing/replica/stripes_in_memory.h"
#include "tests/testing/replica/written_link.h"
#include "tests/testing/shard/change_settings.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto HasReason(Reason reason) { return IsError(reason, ::testing::_); }

constexpr uint32_t kPart = 64;  // elements, of each of two servers
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The answer to a push or to an offer.
template <typename T>
struct Told {
  int times = 0;
  absl::StatusOr<T> answer = absl::UnknownError("not answered");

  std::function<void(const absl::StatusOr<T>&)> Callback() {
    return [this](const absl::StatusOr<T>& told) {
      ++times;
      answer = told;
    };
  }
};

// Server 0 is the shard, server 1 a replica. Its reports come when the test, or a step, waits.
class ShardReplicasTest : public ::testing::Test {
 protected:
  void Start(const ShardOptions& options) {
    Executors executors = Executors::Inline();
    auto arrivals = std::make_unique<HeldExecutor>();
    arrivals_ = arrivals.get();
    executors.arrivals = std::move(arrivals);
    shard_ =
        std::make_unique<Shard>(options, clock_, nullptr, nullptr, nullptr, std::move(executors));
    shard_->Lead({&link_}, nullptr, [this](absl::FunctionRef<bool()> until) {
      if (on_wait_ != nullptr) on_wait_();
      while (!until()) Deliver(1);
    });
  }

  // With the first worker, and parameters.
  void StartTraining(const ShardOptions& options) {
    Start(options);
    session_ = Join("a");
    auto offer = shard_->store().BeginInitialize(session_, 1);
    ASSERT_THAT(offer.status(), IsOk());
    ASSERT_THAT(offer->parameters->Add(Part(0)), IsOk());
    SendToReplica(PushOf(0, 1), 0);
    shard_->store().FinishInitialize(std::move(offer->parameters), initialized_.Callback());
    Deliver();
    ASSERT_THAT(initialized_.answer.status(), IsOk());
    link_.Take();
  }

  static JoinRequest RequestOf(const std::string& worker,
                               absl::optional<uint32_t> index = absl::nullopt) {
    JoinRequest request;
    request.worker = worker;
    request.index = index;
    request.process_nonce = ProcessNonce(worker[0]);
    request.layout = ParametersOnly(2 * kPart);
    request.optimizer = {PlainSgd()};
    return request;
  }
  SessionId Join(const std::string& worker, absl::optional<uint32_t> index = absl::nullopt) {
    return shard_->Join(RequestOf(worker, index), nullptr).value().session;
  }

  PushHeader PushOf(uint64_t sequence, uint32_t attempt, uint64_t step = 0) const {
    PushHeader header;
    header.session = session_;
    header.sequence = Sequence(sequence);
    header.attempt = attempt;
    header.step = Step(step);
    header.incarnation = Incarnation(1);
    return header;
  }

  static TensorChunk Part(float value) { return ChunkOf(0, Values(kPart, value)); }

  // The part of server 1. It waits there for the command.
  void SendToReplica(const PushHeader& header, float value) {
    replica_.calls().BeginPush(header,
                               [this, value](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
                                 if (!push.ok()) return;
                                 const absl::Status added = (*push)->Add(Part(value));
                                 replica_.calls().EndPush(*std::move(push), added).IgnoreError();
                               });
  }

  // The header comes to server 0. Returns the push if it is admitted.
  std::unique_ptr<PendingPush> Begin(const PushHeader& header) {
    std::unique_ptr<PendingPush> admitted;
    shard_->store().BeginPush(header, [&](absl::StatusOr<PushStart> start) {
      if (!start.ok()) return told_.Callback()(start.status());
      if (start->push == nullptr) return told_.Callback()(start->answer);
      admitted = std::move(start->push);
    });
    return admitted;
  }

  // Its payload comes to server 0.
  PushId Finish(std::unique_ptr<PendingPush> push, float value) {
    const absl::Status added = push->Add(Part(value));
    if (added.ok()) return shard_->store().FinishPush(std::move(push), told_.Callback());
    shard_->store().RefusePush(std::move(push), added, told_.Callback());
    return PushId();
  }

  void Push(const PushHeader& header, float value) {
    SendToReplica(header, value);
    Finish(Begin(header), value);
    Deliver();
  }

  // At most so many reports come to server 0.
  void Deliver(size_t most = 1000) {
    for (; most > 0 && !reports_.empty(); --most) {
      const ReplicaReport report = reports_.front();
      reports_.pop_front();
      shard_->OnReport(1, report);
    }
  }

  uint64_t step() const { return shard_->Describe().step.value(); }
  Values ParametersOfBoth() const {
    return {shard_->store().stripe().latest()->values.span()[0],
            replica_.stripe().latest()->values.span()[0]};
  }

  FakeClock clock_;
  std::deque<ReplicaReport> reports_;
  StripesInMemory storage_;  // of server 1
  Replica replica_{{1, 2},
                   SnapshotMemory::kPrivate,
                   nullptr,
                   Executors::Inline(),
                   [this](const ReplicaReport& report) { reports_.push_back(report); },
                   &storage_};
  WrittenLink link_{replica_};
  HeldExecutor* arrivals_ = nullptr;  // the shard's
  std::function<void()> on_wait_;     // called when a step waits for server 1
  SessionId session_;
  Told<InitializeOutcome> initialized_;
  Told<PushOutcome> told_;
  std::unique_ptr<Shard> shard_;
};

// ---- Tensors ----

TEST_F(ShardReplicasTest, ShowsATensorOfAllServersAtOneStep) {
  StartTraining(Sync(1));
  SendToReplica(PushOf(1, 2), 4);
  Finish(Begin(PushOf(1, 2)), 2);
  Deliver();
  link_.Take();
  Told<TensorSummary> told;
  shard_->Summarize({0, kPart - 1, 2}, told.Callback());
  EXPECT_EQ(told.times, 0);
  EXPECT_THAT(link_.Take(), ElementsAre("summarize 1"));
  Push(PushOf(2, 3, 1), 1);  // makes another step before server 1 is heard
  EXPECT_EQ(told.times, 1);
  ASSERT_THAT(told.answer.status(), IsOk());
  EXPECT_EQ(told.answer->step, Step(1));
  EXPECT_EQ(told.answer->statistics.min, -4);
  EXPECT_EQ(told.answer->statistics.max, -2);
  EXPECT_EQ(told.answer->statistics.mean, -3);
  EXPECT_EQ(told.answer->statistics.standard_deviation, 1);
  EXPECT_THAT(told.answer->values, ElementsAre(-2, -4));
}

TEST_F(ShardReplicasTest, FewCallsWaitForATensor) {
  StartTraining(Sync(1));
  Told<TensorSummary> waiting;
  for (size_t i = 0; i < TensorSummaries::kMost; ++i) {
    shard_->Summarize({0, 0, 1}, waiting.Callback());
  }
  link_.Take();
  Told<TensorSummary> refused;
  shard_->Summarize({0, 0, 1}, refused.Callback());
  EXPECT_THAT(refused.answer.status(), HasCode(absl::StatusCode::kResourceExhausted,
                                               HasSubstr("16 calls wait for statistics")));
  EXPECT_THAT(link_.Take(), IsEmpty());
  Deliver(1);
  EXPECT_EQ(waiting.times, 1);
  shard_->Summarize({0, 0, 1}, waiting.Callback());
  Deliver();
  EXPECT_EQ(waiting.times, 17);
  EXPECT_EQ(refused.times, 1);
}

TEST_F(ShardReplicasTest, ATensorIsNotShownWhenItStopsWaiting) {
  StartTraining(Sync(1));
  const absl::Status why = absl::UnavailableError("the server goes down");
  Told<TensorSummary> told;
  shard_->Summarize({0, 0, 1}, told.Callback());
  shard_->StopWaiting(why);
  EXPECT_EQ(told.answer.status(), why);
  Deliver();
  EXPECT_EQ(told.times, 1);
  Told<TensorSummary> late;
  shard_->Summarize({0, 0, 1}, late.Callback());
  EXPECT_EQ(late.answer.status(), why);
}

// ---- Parameters ----

TEST_F(ShardReplicasTest, TakesParametersWhenAllServersHaveThem) {
  Start(Sync(1));
  session_ = Join("a");
  auto offer = shard_->store().BeginInitialize(session_, 1);
  ASSERT_THAT(offer->parameters->Add(Part(3)), IsOk());
  EXPECT_NE(shard_->store().FinishInitialize(std::move(offer->parameters), initialized_.Callback()),
            PushId());
  EXPECT_EQ(initialized_.times, 0);
  SendToReplica(PushOf(0, 1), 4);
  Deliver();
  EXPECT_EQ(initialized_.times, 1);
  ASSERT_THAT(initialized_.answer.status(), IsOk());
  EXPECT_TRUE(initialized_.answer->accepted);
  EXPECT_THAT(link_.Take(), ElementsAre("open 128", "admit 1:0:1", "take parameters 0"));
  EXPECT_THAT(ParametersOfBoth(), ElementsAre(3, 4));
}

TEST_F(ShardReplicasTest, DropsAnOfferThatComesSecond) {
  StartTraining(Sync(1));
  EXPECT_FALSE(shard_->store().BeginInitialize(session_, 2)->answer.accepted);
  EXPECT_THAT(link_.Take(), ElementsAre("pass 1:0:2"));
}

TEST_F(ShardReplicasTest, DropsAnOfferThatBreaksOff) {
  Start(Sync(1));
  session_ = Join("a");
  link_.Take();
  shard_->store().AbandonInitialize(
      std::move(shard_->store().BeginInitialize(session_, 1)->parameters));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:0:1", "drop 1:0:1"));
  auto offer = shard_->store().BeginInitialize(session_, 2);
  ASSERT_THAT(offer->parameters->Add(Part(3)), IsOk());
  const PushId gathers =
      shard_->store().FinishInitialize(std::move(offer->parameters), initialized_.Callback());
  EXPECT_TRUE(shard_->store().CancelGathering(gathers));
  EXPECT_FALSE(shard_->store().CancelGathering(gathers));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:0:2", "drop 1:0:2"));
  EXPECT_EQ(initialized_.times, 0);
}

TEST_F(ShardReplicasTest, RefusesAnOfferWithAGap) {
  Start(Sync(1));
  session_ = Join("a");
  link_.Take();
  shard_->store().FinishInitialize(
      std::move(shard_->store().BeginInitialize(session_, 1)->parameters), initialized_.Callback());
  EXPECT_THAT(initialized_.answer.status(), HasReason(Reason::kBadChunk));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:0:1", "drop 1:0:1"));
}

TEST_F(ShardReplicasTest, AnOfferEndsWithItsSession) {
  Start(Sync(1));
  session_ = Join("a");
  auto offer = shard_->store().BeginInitialize(session_, 1);
  ASSERT_THAT(offer->parameters->Add(Part(3)), IsOk());
  shard_->store().FinishInitialize(std::move(offer->parameters), initialized_.Callback());
  Join("a");
  EXPECT_EQ(initialized_.times, 1);
  EXPECT_THAT(initialized_.answer.status(), HasReason(Reason::kUnknownSession));
  EXPECT_EQ(shard_->store().stripe().latest(), nullptr);
}

TEST_F(ShardReplicasTest, AWholeOfferIsDroppedIfItsSessionEndsBeforeItIsTaken) {
  Start(Sync(1));
  session_ = Join("a");
  auto offer = shard_->store().BeginInitialize(session_, 1);
  ASSERT_THAT(offer->parameters->Add(Part(3)), IsOk());
  SendToReplica(PushOf(0, 1), 4);
  shard_->store().FinishInitialize(std::move(offer->parameters), initialized_.Callback());
  arrivals_->Hold();
  Deliver();
  Join("a");
  arrivals_->Release();
  EXPECT_EQ(initialized_.times, 1);
  EXPECT_THAT(initialized_.answer.status(), HasReason(Reason::kUnknownSession));
  EXPECT_THAT(link_.Take(),
              ElementsAre("open 128", "admit 1:0:1", "end session 1, keep 1", "drop 1:0:1"));
}

// ---- Pushes ----

TEST_F(ShardReplicasTest, CountsAPushWhenAllServersHaveIt) {
  StartTraining(Sync(1));
  EXPECT_NE(Finish(Begin(PushOf(1, 2)), 1), PushId());
  EXPECT_EQ(told_.times, 0);
  EXPECT_EQ(step(), 0u);
  SendToReplica(PushOf(1, 2), 2);
  Deliver();
  EXPECT_EQ(told_.times, 1);
  EXPECT_THAT(told_.answer, Applied(1));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "add last", "order", "publish"));
  EXPECT_THAT(ParametersOfBoth(), ElementsAre(-1, -2));
  EXPECT_EQ(shard_->Describe().traffic.bytes_received, 2 * 2 * kPart * sizeof(float));
}

TEST_F(ShardReplicasTest, DropsAPushThatBreaksOff) {
  StartTraining(Sync(1));
  shard_->store().AbandonPush(Begin(PushOf(1, 2)), Abandoned::kAborted);
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "drop 1:1:2"));
}

TEST_F(ShardReplicasTest, DropsTheStreamsOfAPushThatIsAnsweredWithoutItsPayload) {
  StartTraining(Sync(1));
  Push(PushOf(1, 2), 1);
  link_.Take();
  Begin(PushOf(1, 3));
  EXPECT_EQ(told_.answer->disposition, Disposition::kDuplicate);
  Begin(PushOf(2, 4, /*step=*/7));
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kFutureStep));
  Begin(PushOf(2, 5, /*step=*/0));
  EXPECT_EQ(told_.answer->disposition, Disposition::kStaleDropped);
  EXPECT_THAT(link_.Take(), ElementsAre("pass 1:1:3", "pass 1:2:4", "pass 1:2:5"));
}

TEST_F(ShardReplicasTest, DropsAPushThatIsStaleWhenItIsWhole) {
  ShardOptions options = Async(1);
  options.consistency.mode = ConsistencyMode::kBounded;
  options.consistency.max_staleness = 0;
  StartTraining(options);
  const SessionId other = Join("b");
  PushHeader late = PushOf(1, 1);
  late.session = other;
  SendToReplica(late, 1);
  std::unique_ptr<PendingPush> push = Begin(late);
  Push(PushOf(1, 2), 1);
  EXPECT_EQ(step(), 1u);
  link_.Take();
  Finish(std::move(push), 1);
  Deliver();
  EXPECT_EQ(told_.answer->disposition, Disposition::kStaleDropped);
  EXPECT_THAT(link_.Take(), ElementsAre("drop 2:1:1"));
}

TEST_F(ShardReplicasTest, ACancelledPushFreesItsPlace) {
  StartTraining(Sync(1));
  const PushId gathers = Finish(Begin(PushOf(1, 2)), 1);
  EXPECT_TRUE(shard_->store().CancelGathering(gathers));
  EXPECT_FALSE(shard_->store().CancelGathering(gathers));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "drop 1:1:2"));
  EXPECT_EQ(told_.times, 0);
  EXPECT_EQ(shard_->Describe().in_flight.bytes, 0u);
  EXPECT_EQ(shard_->Describe().counters.aborted, 1u);
  Push(PushOf(1, 3), 1);
  EXPECT_THAT(told_.answer, Applied(1));
}

TEST_F(ShardReplicasTest, AWholePushCannotBeCancelled) {
  StartTraining(Sync(2));
  SendToReplica(PushOf(1, 2), 1);
  const PushId gathers = Finish(Begin(PushOf(1, 2)), 1);
  Deliver();
  EXPECT_FALSE(shard_->store().CancelGathering(gathers));
  EXPECT_THAT(told_.answer, Accepted(0));
}

TEST_F(ShardReplicasTest, AnswersAPushOfWhichAnotherServerRefusesItsPart) {
  StartTraining(Sync(1));
  Finish(Begin(PushOf(1, 2)), 1);
  SendToReplica(PushOf(1, 2), kNan);
  Deliver();
  EXPECT_EQ(told_.times, 1);
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kNotFinite));
  // And if it has done so before the rest of the stream came.
  std::unique_ptr<PendingPush> push = Begin(PushOf(1, 3));
  SendToReplica(PushOf(1, 3), kNan);
  Deliver();
  EXPECT_EQ(told_.times, 1);
  Finish(std::move(push), 1);
  EXPECT_EQ(told_.times, 2);
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kNotFinite));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "drop 1:1:2", "admit 1:1:3", "drop 1:1:3"));
  EXPECT_EQ(shard_->Describe().counters.rejected, 2u);
  EXPECT_EQ(step(), 0u);
}

TEST_F(ShardReplicasTest, RefusesAPushWhoseOwnPartIsWrong) {
  StartTraining(Sync(1));
  SendToReplica(PushOf(1, 2), 1);
  Finish(Begin(PushOf(1, 2)), kNan);
  Deliver();
  EXPECT_EQ(told_.times, 1);
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kNotFinite));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "drop 1:1:2"));
}

TEST_F(ShardReplicasTest, LimitsTheNormOverAllParts) {
  ShardOptions options = Sync(1);
  options.guards.max_push_norm = 12;  // a part of ones has the norm 8
  StartTraining(options);
  SendToReplica(PushOf(1, 2), 1.2F);
  Finish(Begin(PushOf(1, 2)), 1.2F);
  Deliver();
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kNormTooLarge));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2 and measure", "drop 1:1:2"));
  Push(PushOf(1, 3), 1);
  EXPECT_THAT(told_.answer, Applied(1));
}

TEST_F(ShardReplicasTest, RefusesAnAttemptThatIsNotHigher) {
  StartTraining(Sync(1));
  Begin(PushOf(1, 1));  // the offer's
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kBadArgument));
  Begin(PushOf(1, 0));
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kBadArgument));
  EXPECT_THAT(link_.Take(), IsEmpty());
  EXPECT_EQ(shard_->Describe().counters.rejected, 2u);
}

// ---- Sessions ----

TEST_F(ShardReplicasTest, TellsTheEndOfASessionHoweverItComes) {
  StartTraining(Sync(1));
  Join("a");  // replaced
  ASSERT_THAT(shard_->Leave(Join("b"), {}), IsOk());
  Join("c");
  ASSERT_THAT(shard_->Evict("c"), IsOk());
  shard_->ConnectionLost(Join("d"));  // and the second "a" is silent
  clock_.Advance(absl::Seconds(11));
  shard_->Tick();
  EXPECT_THAT(link_.Take(),
              ElementsAre("end session 1, keep 0", "end session 3, keep 0", "end session 4, keep 0",
                          "end session 2, keep 0", "end session 5, keep 0"));
}

TEST_F(ShardReplicasTest, APushThatIsNotWholeEndsWithItsSession) {
  StartTraining(Sync(1));
  Finish(Begin(PushOf(1, 2)), 1);
  Join("a");
  EXPECT_EQ(told_.times, 1);
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kUnknownSession));
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "end session 1, keep 0"));
  EXPECT_EQ(shard_->Describe().counters.in_progress, 0u);
  EXPECT_EQ(shard_->Describe().in_flight.bytes, 0u);
}

TEST_F(ShardReplicasTest, APushWhosePayloadComesAfterTheEndOfItsSessionIsRefused) {
  StartTraining(Sync(1));
  std::unique_ptr<PendingPush> push = Begin(PushOf(1, 2));
  Join("a");
  Finish(std::move(push), 1);
  EXPECT_EQ(told_.times, 1);
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kUnknownSession));
}

TEST_F(ShardReplicasTest, KeepsAWholePushThatMayCountAfterItsSession) {
  ShardOptions options = Sync(2);
  options.consistency.order = ReductionOrder::kRank;
  StartTraining(options);  // "a" has rank 0
  const SessionId a = session_;
  session_ = Join("b", 1);
  Push(PushOf(1, 1), 5);
  EXPECT_THAT(told_.answer, Accepted(0));
  Join("b", 1);
  EXPECT_THAT(link_.Take(), ElementsAre("admit 2:1:1", "end session 2, keep 1"));
  session_ = a;
  Push(PushOf(1, 2), 1);
  EXPECT_EQ(step(), 1u);
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "add", "add last", "order", "publish"));
  EXPECT_THAT(ParametersOfBoth(), ElementsAre(-3, -3));
}

// ---- Pulls ----

class ShardReplicasPullTest : public ShardReplicasTest {
 protected:
  PullId Pull(uint64_t number, uint64_t min_step = 0) {
    PullRequest request;
    request.session = session_;
    request.min_step = Step(min_step);
    request.number = number;
    return shard_->store().Pull(request, pulled_.Callback());
  }

  Told<PullResult> pulled_;
};

TEST_F(ShardReplicasPullTest, ReleasesAPullOnAllServers) {
  StartTraining(Sync(1));
  Pull(1);
  EXPECT_THAT(pulled_.answer.status(), IsOk());
  Pull(2, 1);
  EXPECT_EQ(pulled_.times, 1);
  Push(PushOf(1, 2), 1);
  EXPECT_EQ(pulled_.times, 2);
  EXPECT_THAT(link_.Take(), ElementsAre("release 1:1 at 0", "drop pull 1:1", "admit 1:1:2",
                                        "add last", "order", "publish", "release 1:2 at 1"));
}

TEST_F(ShardReplicasPullTest, DropsAPullThatIsCancelledOrFails) {
  StartTraining(Sync(1));
  EXPECT_TRUE(shard_->store().CancelPull(Pull(1, 1)));
  EXPECT_THAT(link_.Take(), ElementsAre("drop pull 1:1"));
  Pull(2, 1);
  shard_->Drain();
  EXPECT_THAT(pulled_.answer.status(), HasReason(Reason::kDraining));
  EXPECT_THAT(link_.Take(), ElementsAre("drop pull 1:1", "drop pull 1:2"));
}

TEST_F(ShardReplicasPullTest, RefusesANumberThatIsNotHigher) {
  StartTraining(Sync(1));
  Pull(3);
  Pull(3);
  EXPECT_EQ(pulled_.times, 2);
  EXPECT_THAT(pulled_.answer.status(), HasReason(Reason::kBadArgument));
  EXPECT_THAT(link_.Take(), ElementsAre("release 1:3 at 0"));
}

TEST_F(ShardReplicasPullTest, TellsNothingOfSessionsThatNeverJoined) {
  StartTraining(Sync(1));
  session_ = SessionId(77);
  Pull(1);
  Begin(PushOf(1, 1));
  EXPECT_THAT(shard_->store().BeginInitialize(session_, 1).status(),
              HasReason(Reason::kUnknownSession));
  EXPECT_THAT(pulled_.answer.status(), HasReason(Reason::kUnknownSession));
  EXPECT_THAT(told_.answer.status(), HasReason(Reason::kUnknownSession));
  EXPECT_THAT(link_.Take(), IsEmpty());
}

// ---- Steps, and the end ----

TEST_F(ShardReplicasTest, TellsWhichServerAStepWaitsFor) {
  StartTraining(Sync(1));
  EXPECT_EQ(shard_->Describe().servers, 2u);
  EXPECT_FALSE(shard_->Describe().awaited_holder.has_value());
  int waits = 0;
  on_wait_ = [&] {
    ++waits;
    const ShardStatus status = shard_->Describe();
    ASSERT_TRUE(status.awaited_holder.has_value());
    EXPECT_EQ(status.awaited_holder->server, 1u);
    EXPECT_EQ(status.awaited_holder->since, clock_.Now());
  };
  Push(PushOf(1, 2), 1);
  EXPECT_GT(waits, 0);
  EXPECT_FALSE(shard_->Describe().awaited_holder.has_value());
}

TEST_F(ShardReplicasTest, PublishesNothingWhenItStopsWaiting) {
  StartTraining(Sync(1));
  const absl::Status why = absl::UnavailableError("the server goes down");
  on_wait_ = [&] { shard_->StopWaiting(why); };
  Push(PushOf(1, 2), 1);
  EXPECT_EQ(told_.times, 1);
  EXPECT_EQ(told_.answer.status(), why);
  EXPECT_EQ(step(), 0u);
  EXPECT_THAT(ParametersOfBoth(), ElementsAre(0, 0));
  shard_->EndReplicas(3);
  EXPECT_THAT(link_.Take(), ElementsAre("admit 1:1:2", "add last", "order", "end job 3"));
  Join("b");
  EXPECT_THAT(link_.Take(), IsEmpty());
  EXPECT_EQ(replica_.exit_code(), 3);
}

TEST_F(ShardReplicasTest, TellsNobodyOfAStepThatIsNotPublished) {
  StartTraining(Sync(1));
  std::vector<Step> noted;
  shard_->durability().SetStepListener([&](Step step) { noted.push_back(step); });
  Push(PushOf(1, 2), 1);
  EXPECT_THAT(noted, ElementsAre(Step(1)));
  on_wait_ = [&] { shard_->StopWaiting(absl::UnavailableError("a server is lost")); };
  Push(PushOf(2, 3, /*step=*/1), 1);
  EXPECT_EQ(step(), 1u);
  EXPECT_THAT(noted, ElementsAre(Step(1)));
}

TEST_F(ShardReplicasTest, AnswersPushesThatGatherWhenItStopsWaiting) {
  StartTraining(Sync(1));
  const absl::Status why = absl::UnavailableError("the server goes down");
  const PushId gathers = Finish(Begin(PushOf(1, 2)), 1);
  shard_->StopWaiting(why);
  EXPECT_EQ(told_.times, 1);
  EXPECT_EQ(told_.answer.status(), why);
  EXPECT_FALSE(shard_->store().CancelGathering(gathers));
  std::unique_ptr<PendingPush> late = Begin(PushOf(1, 3));
  ASSERT_NE(late, nullptr);
  Finish(std::move(late), 1);
  EXPECT_EQ(told_.times, 2);
  EXPECT_EQ(told_.answer.status(), why);
  EXPECT_EQ(shard_->Describe().counters.in_progress, 0u);
}

TEST_F(ShardReplicasTest, IgnoresReportsThatNobodyWaitsFor) {
  StartTraining(Sync(1));
  shard_->OnReport(1, StripeReport());
  shard_->OnReport(1, HaveReport{PushId(99), absl::OkStatus(), absl::nullopt, 0});
  shard_->OnReport(1, SavedReport{Step(4), absl::OkStatus(), 5});
  shard_->OnReport(1, LoadedReport());
  shard_->OnReport(1, SummaryReport{9, {}});
  Push(PushOf(1, 2), 1);
  EXPECT_THAT(told_.answer, Applied(1));
}

// ---- Checkpoints ----

TEST_F(ShardReplicasTest, ACheckpointWaitsForWhatTheOtherServerSaves) {
  StartTraining(Sync(1));
  std::shared_ptr<const ShardCheckpoint> taken;
  shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken = *checkpoint; });
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->parameters, shard_->store().stripe().latest());
  EXPECT_THAT(link_.Take(), ElementsAre("take checkpoint"));
  EXPECT_FALSE(taken->elsewhere->complete());
  Deliver();
  EXPECT_THAT(taken->elsewhere->Await(), IsOkAndHolds(ElementsAre(1000)));
}

TEST_F(ShardReplicasTest, ACheckpointFailsIfTheOtherServerCannotSave) {
  StartTraining(Sync(1));
  storage_.fails = absl::ResourceExhaustedError("the disk is full");
  std::shared_ptr<const ShardCheckpoint> taken;
  shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken = *checkpoint; });
  Deliver();
  EXPECT_EQ(taken->elsewhere->Await().status(),
            absl::ResourceExhaustedError("server 1 of 2 cannot save its part: the disk is full"));
}

TEST_F(ShardReplicasTest, TwoCheckpointsOfOneStepAreSavedOneAfterTheOther) {
  StartTraining(Sync(1));
  std::vector<std::shared_ptr<const ShardCheckpoint>> taken;
  for (int i = 0; i < 2; ++i) {
    shard_->durability().TakeCheckpoint(
        [&](const auto& checkpoint) { taken.push_back(*checkpoint); });
  }
  Deliver(1);
  EXPECT_THAT(taken[0]->elsewhere->Await(), IsOkAndHolds(ElementsAre(1000)));
  EXPECT_FALSE(taken[1]->elsewhere->complete());
  Deliver(1);
  EXPECT_THAT(taken[1]->elsewhere->Await(), IsOkAndHolds(ElementsAre(1000)));
}

TEST_F(ShardReplicasTest, ACheckpointThatIsAskedForFailsOnceItHasStoppedWaiting) {
  StartTraining(Sync(1));
  const absl::Status why = absl::UnavailableError("down");
  shard_->StopWaiting(why);
  absl::Status taken;
  shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken = checkpoint.status(); });
  EXPECT_EQ(taken, why);
}

TEST_F(ShardReplicasTest, ACheckpointThatWaitsForAStepFailsWhenTheServerGoesDown) {
  StartTraining(Sync(1));
  const absl::Status why = absl::UnavailableError("down");
  absl::Status taken;
  on_wait_ = [&] {
    shard_->durability().TakeCheckpoint(
        [&](const auto& checkpoint) { taken = checkpoint.status(); });
    shard_->StopWaiting(why);
  };
  Push(PushOf(1, 2), 1);
  EXPECT_EQ(taken, why);
}

TEST_F(ShardReplicasTest, ACheckpointFailsWhenTheServerGoesDown) {
  StartTraining(Sync(1));
  std::shared_ptr<const ShardCheckpoint> taken;
  shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken = *checkpoint; });
  shard_->StopWaiting(absl::UnavailableError("down"));
  EXPECT_EQ(taken->elsewhere->Await().status(), absl::UnavailableError("down"));
}

TEST_F(ShardReplicasTest, NobodyJoinsBeforeAllServersHaveLoadedTheCheckpoint) {
  StartTraining(Sync(1));
  Push(PushOf(1, 2), 1);
  std::shared_ptr<const ShardCheckpoint> taken;
  shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken = *checkpoint; });
  Deliver();
  const Values parameters = ParametersOfBoth();
  std::vector<ReplicaReport> reports;
  Replica replica(
      {1, 2}, SnapshotMemory::kPrivate, nullptr, Executors::Inline(),
      [&](const ReplicaReport& report) { reports.push_back(report); }, &storage_);
  WrittenLink link(replica);
  Shard next(Sync(1), clock_);
  next.Lead({&link});
  ASSERT_THAT(next.durability().Restore(*taken), IsOk());
  Told<TensorSummary> told;
  next.Summarize({0, 0, 1}, told.Callback());
  EXPECT_THAT(told.answer.status(),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("server 1 of 2 has not loaded")));
  next.durability().BeginIncarnation({});
  EXPECT_EQ(next.Join(RequestOf("a"), nullptr).status(),
            absl::UnavailableError("server 1 of 2 has not loaded its part of the checkpoint yet"));
  ASSERT_EQ(reports.size(), 1u);
  next.OnReport(1, reports[0]);
  EXPECT_THAT(next.Join(RequestOf("a"), nullptr).status(), IsOk());
  EXPECT_EQ(next.Describe().step, Step(1));
  EXPECT_EQ(next.store().stripe().latest()->values.span()[0], parameters[0]);
  EXPECT_EQ(replica.stripe().latest()->values.span()[0], parameters[1]);
}

// A journal of server 0 in memory.
class JournalInMemory final : public StepJournal {
 public:
  void Append(const StepRecord& record, absl::Span<const float> sum,
              absl::Span<const TableSums> rows) override {
    steps.push_back({record, ValuesOf(sum), {rows.begin(), rows.end()}});
  }

  struct Journaled {
    StepRecord record;
    Values sum;
    std::vector<TableSums> rows;
  };
  std::vector<Journaled> steps;
};

class ShardReplicasJournalTest : public ShardReplicasTest {
 protected:
  ShardReplicasJournalTest() {
    StartTraining(Sync(1));
    shard_->durability().TakeCheckpoint([&](const auto& checkpoint) { taken_ = *checkpoint; });
    shard_->durability().EnableJournal(&journal_);
    for (const uint64_t sequence : {1, 2}) {
      Push(PushOf(sequence, static_cast<uint32_t>(sequence) + 1, sequence - 1), 1);
    }
    Deliver();
    link_.Take();
    next_.Lead({&next_link_}, nullptr, [this](absl::FunctionRef<bool()> until) {
      while (!until() && !reports_.empty()) {
        const ReplicaReport report = reports_.front();
        reports_.pop_front();
        next_.OnReport(1, report);
      }
    });
    next_.durability().BeginRecovery();
    EXPECT_THAT(next_.durability().Restore(*taken_), IsOk());
  }

  absl::Status Replay(size_t step) {
    return next_.durability().Replay(journal_.steps[step].record, journal_.steps[step].sum,
                                     journal_.steps[step].rows);
  }

  JournalInMemory journal_;
  std::shared_ptr<const ShardCheckpoint> taken_;
  // The next incarnation of both servers.
  std::deque<ReplicaReport> reports_;
  Replica next_replica_{{1, 2},
                        SnapshotMemory::kPrivate,
                        nullptr,
                        Executors::Inline(),
                        [this](const ReplicaReport& report) { reports_.push_back(report); },
                        &storage_};
  WrittenLink next_link_{next_replica_};
  Shard next_{Sync(1), clock_};
};

TEST_F(ShardReplicasJournalTest, MakesTheStepsAgainOnAllServers) {
  const auto least = next_.durability().AwaitLoaded();
  ASSERT_THAT(least, IsOk());
  EXPECT_EQ(least->step, Step(2));
  EXPECT_EQ(least->server, 1u);
  for (const size_t step : {0, 1}) EXPECT_THAT(Replay(step), IsOk());
  const Values parameters = ParametersOfBoth();
  EXPECT_EQ(next_.store().stripe().latest()->values.span()[0], parameters[0]);
  EXPECT_EQ(next_replica_.stripe().latest()->values.span()[0], parameters[1]);
  EXPECT_EQ(next_replica_.stripe().latest()->step, Step(2));
  EXPECT_THAT(next_link_.Take(), ElementsAre("open 128", "load checkpoint", "replay 1", "order",
                                             "publish", "replay 2", "order", "publish"));
}

TEST_F(ShardReplicasJournalTest, NobodyJoinsOrChangesAnythingUntilTheStepsAreMadeAgain) {
  ASSERT_THAT(next_.durability().AwaitLoaded(), IsOk());
  const absl::Status repeats = absl::UnavailableError("the servers restore their state; try again");
  EXPECT_EQ(next_.Join(RequestOf("a"), nullptr).status(), repeats);
  EXPECT_EQ(ChangeLearningRate(next_, 1).status(), repeats);
  absl::Status taken;
  next_.durability().TakeCheckpoint([&](const auto& checkpoint) { taken = checkpoint.status(); });
  EXPECT_EQ(taken, repeats);
  next_.durability().BeginIncarnation({});
  next_.durability().TakeCheckpoint([&](const auto& checkpoint) { taken = checkpoint.status(); });
  EXPECT_THAT(taken, IsOk());
  EXPECT_EQ(next_.Join(RequestOf("a"), nullptr).status(), repeats);
  next_.durability().EndRecovery();
  EXPECT_THAT(next_.Join(RequestOf("a"), nullptr).status(), IsOk());
}

TEST_F(ShardReplicasJournalTest, MakesNoStepAgainAfterItHasStoppedWaiting) {
  const absl::Status why = absl::UnavailableError("the server goes down");
  next_.StopWaiting(why);
  EXPECT_EQ(next_.durability().AwaitLoaded().status(), why);
  EXPECT_EQ(Replay(0), why);
  EXPECT_EQ(next_.Describe().step, Step(0));
}

TEST_F(ShardReplicasJournalTest, JournalsNoStepThatIsGivenUpBecauseAServerIsLost) {
  on_wait_ = [this] { shard_->StopWaiting(absl::UnavailableError("server 1 is lost")); };
  Push(PushOf(3, 4, 2), 1);
  EXPECT_EQ(journal_.steps.size(), 2u);
  EXPECT_EQ(step(), 2u);
}

TEST_F(ShardReplicasJournalTest, NoticesThatAStepComesOutWithOtherBits) {
  ASSERT_THAT(next_.durability().AwaitLoaded(), IsOk());
  journal_.steps[0].sum[0] += 1;
  EXPECT_THAT(Replay(0), HasCode(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("step 1 comes out with other bits")));
}

// ---- Inconsistent reads ----

class InconsistentReplicasTest : public ShardReplicasTest {
 protected:
  // The newest step that server 1 shows while server 0 waits for its reports: on the sample, on
  // what prepares the step, and on the step that it has made.
  std::vector<uint64_t> NewestWhileAStepIsMade(bool inconsistent) {
    ShardOptions options = Async(1);
    options.consistency.inconsistent_reads = inconsistent;
    StartTraining(options);
    std::vector<uint64_t> newest;
    on_wait_ = [&] { newest.push_back(replica_.stripe().newest(kPart)->step.value()); };
    Push(PushOf(1, 2), 1);
    on_wait_ = nullptr;
    return newest;
  }
};

TEST_F(InconsistentReplicasTest, AStepIsReadBeforeItIsPublished) {
  EXPECT_THAT(NewestWhileAStepIsMade(true), ElementsAre(0, 0, 1));
}

TEST_F(InconsistentReplicasTest, AStepIsNotReadBeforeItIsPublishedIfReadsAreConsistent) {
  EXPECT_THAT(NewestWhileAStepIsMade(false), ElementsAre(0, 0, 0));
}

TEST_F(InconsistentReplicasTest, MayBeginWhileTheJobRuns) {
  StartTraining(Sync(1));
  Consistency rules;
  rules.mode = ConsistencyMode::kAsync;
  rules.inconsistent_reads = true;
  EXPECT_THAT(ChangeConsistency(*shard_, rules), IsOk());
}

TEST_F(ShardReplicasTest, TheDigestIsTheCrc32OfTheParametersOnAllServers) {
  StartTraining(Sync(1));
  const auto push = PushOf(1, 2);
  Push(push, 2);
  ASSERT_THAT(told_.answer.status(), IsOk());
  std::vector<float> parameters(2 * kPart, -2);
  const auto* const bytes = reinterpret_cast<const Bytef*>(parameters.data());
  EXPECT_EQ(shard_->Digest(absl::InfiniteDuration()),
            crc32(0, bytes, static_cast<uInt>(parameters.size() * sizeof(float))));
}

}  // namespace
}  // namespace sluice

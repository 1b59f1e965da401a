// A shard with threads of its own leads a replica behind a link with threads of its own.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/replica.h"
#include "server/replica/replica_link.h"
#include "server/shard/shard.h"
#include "tests/testing/shard/shard_client.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::Each;

constexpr uint32_t kPart = 64;  // elements, of each of two servers
constexpr uint64_t kSteps = 50;
constexpr int kWorkers = 3;

Executors StepsOnAThread() {
  Executors executors = Executors::Inline();
  executors.steps = std::make_unique<SerialExecutor>();
  return executors;
}

// One thread brings commands to the replica, another one its reports to the shard.
class ThreadedLink final : public ReplicaLink {
 public:
  ThreadedLink()
      : replica_({1, 2}, SnapshotMemory::kPrivate, nullptr, StepsOnAThread(),
                 [this](const ReplicaReport& report) {
                   reports_.Run([this, report] { shard_->OnReport(1, report); });
                 }) {}

  void Lead(Shard& shard) {
    shard_ = &shard;
    shard.Lead({this});
  }

  // From now on no order is carried out. Notifies when the first one has come.
  void LoseOrders(absl::Notification& first) { lost_ = &first; }

  bool silent() const override { return false; }
  void Send(const ReplicaCommand& command) override {
    if (lost_ != nullptr && std::holds_alternative<StepOrder>(command)) return lost_->Notify();
    commands_.Run([this, command] { replica_.Execute(command); });
  }

  Replica& replica() { return replica_; }

  // The worker's part comes to the replica.
  void Bring(const PushHeader& header, float value) {
    replica_.calls().BeginPush(
        header, [this, value](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
          ASSERT_THAT(push.status(), IsOk());
          const absl::Status added = (*push)->Add(ChunkOf(0, Values(kPart, value)));
          replica_.calls().EndPush(*std::move(push), added).IgnoreError();
        });
  }

  void Drain() {
    commands_.Drain();
    reports_.Drain();
  }

 private:
  Shard* shard_ = nullptr;
  absl::Notification* lost_ = nullptr;
  SerialExecutor reports_;
  Replica replica_;
  SerialExecutor commands_;
};

class ShardReplicasThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    link_.Lead(shard_);
    for (int i = 0; i < kWorkers; ++i) sessions_.push_back(Join(std::string(1, 'a' + i)));
    PushHeader header;
    header.session = sessions_[0];
    header.attempt = 1;
    link_.Bring(header, 0);
    auto offer = shard_.store().BeginInitialize(sessions_[0], 1);
    ASSERT_THAT(offer.status(), IsOk());
    ASSERT_THAT(offer->parameters->Add(ChunkOf(0, Values(kPart, 0))), IsOk());
    Answer<InitializeOutcome> initialized;
    shard_.store().FinishInitialize(std::move(offer->parameters), initialized.Callback());
    ASSERT_THAT(initialized.Wait(), IsOk());
  }

  void TearDown() override {
    shard_.StopWaiting(absl::UnavailableError("the server goes down"));
    shard_.store().executors().Drain();
    link_.Drain();
  }

  SessionId Join(const std::string& worker) {
    JoinRequest request;
    request.worker = worker;
    request.process_nonce = ProcessNonce(1);
    request.layout = ParametersOnly(2 * kPart);
    request.optimizer = {PlainSgd()};
    return shard_.Join(request, nullptr).value().session;
  }

  Answer<PushOutcome> Push(int worker, uint64_t step, float value) {
    PushHeader header;
    header.session = sessions_[static_cast<size_t>(worker)];
    header.sequence = Sequence(step + 1);
    header.attempt = static_cast<uint32_t>(step) + 2;
    header.step = Step(step);
    header.incarnation = Incarnation(1);
    link_.Bring(header, value);
    Answer<PushOutcome> answer;
    shard_.store().BeginPush(header, [&](absl::StatusOr<PushStart> start) {
      ASSERT_THAT(start.status(), IsOk());
      ASSERT_NE(start->push, nullptr);
      ASSERT_THAT(start->push->Add(ChunkOf(0, Values(kPart, value))), IsOk());
      shard_.store().FinishPush(std::move(start->push), answer.Callback());
    });
    return answer;
  }

  void AwaitStep(int worker, uint64_t step) {
    PullRequest request;
    request.session = sessions_[static_cast<size_t>(worker)];
    request.min_step = Step(step);
    request.number = step;
    Answer<PullResult> answer;
    shard_.store().Pull(request, answer.Callback());
    EXPECT_THAT(answer.Wait(), IsOk());
  }

  ThreadedLink link_;
  Shard shard_{Sync(kWorkers), RealClock(), nullptr, nullptr, nullptr, Executors::OnThreads()};
  std::vector<SessionId> sessions_;
};

TEST_F(ShardReplicasThreadsTest, MakesStepsOnBoth) {
  InParallel(kWorkers, [this](int worker) {
    for (uint64_t step = 0; step < kSteps; ++step) {
      EXPECT_THAT(Push(worker, step, 2).Wait(), IsOk());
      AwaitStep(worker, step + 1);
    }
  });
  link_.Drain();
  EXPECT_THAT(ValuesOf(shard_.store().stripe().latest()->values.span()), Each(-2.0F * kSteps));
  EXPECT_THAT(ValuesOf(link_.replica().stripe().latest()->values.span()), Each(-2.0F * kSteps));
}

TEST_F(ShardReplicasThreadsTest, StopsWaitingForAServerThatIsAway) {
  absl::Notification ordered;
  link_.LoseOrders(ordered);
  std::vector<Answer<PushOutcome>> answers;
  for (int i = 0; i < kWorkers; ++i) answers.push_back(Push(i, 0, 2));
  ordered.WaitForNotification();
  const absl::Status why = absl::UnavailableError("the server goes down");
  shard_.StopWaiting(why);
  int failed = 0;  // of all pushes the last one is part of the step that it completes
  for (const Answer<PushOutcome>& answer : answers) failed += answer.Wait().status() == why;
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(shard_.Describe().step, Step(0));
}

}  // namespace
}  // namespace sluice

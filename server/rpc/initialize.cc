#include "server/rpc/initialize.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/status.h"
#include "server/rpc/arrived_chunk.h"
#include "server/rpc/call_wait.h"

namespace sluice {
namespace {

// gRPC reads one message after the other. The turn, the end of the session and the parameters' copy
// come on other threads, and several threads may end the call; Answer() lets the first one do it.
class InitializeStream final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                               public std::enable_shared_from_this<InitializeStream> {
 public:
  InitializeStream(grpc::ByteBuffer* response, const TransformRegistry& transforms,
                   OfferTurns* turns, std::function<absl::Status()> ready, ParameterStore& store)
      : response_(response),
        transforms_(transforms),
        turns_(turns),
        ready_(std::move(ready)),
        store_(store),
        turn_([this](const void* offer) { return turns_ != nullptr && turns_->Cancel(offer); }),
        wait_([&store](PushId id) { return store.CancelPush(id); }),
        gathering_([&store](PushId id) { return store.CancelGathering(id); }) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (ok) store_.wire_bytes().AddReceived(message_.Length());
    if (phase() == Phase::kAwaitsHeader) {
      Begin(ok);
    } else if (ok) {
      AddChunk();
    } else {
      Offer();
    }
  }

  void OnCancel() override {
    if (turn_.Cancel()) Answer(absl::CancelledError());
    if (wait_.Cancel()) Answer(absl::CancelledError());
    if (gathering_.Cancel()) Send(absl::CancelledError());
  }

  void OnDone() override {
    // Before the next offer's begin.
    if (parameters_ != nullptr) store_.AbandonInitialize(std::move(parameters_));
    if (turns_ != nullptr) turns_->Leave(this);
    self_.reset();
  }

 private:
  enum class Phase {
    kAwaitsHeader,
    kWaits,     // for its turn, and until the store lets it in
    kReceives,  // messages are read, one after the other
    kAnswered,  // or about to be: by who brought it here, or by a cancel of its last wait
  };

  Phase phase() {
    absl::MutexLock lock(&mu_);
    return phase_;
  }

  void Begin(bool ok) {
    v1::InitializeParamsRequest first;
    if (!ok || !DecodeMessage(message_, &first) || !first.has_header()) {
      Answer(
          MakeError(Reason::kMissingHeader, "the offer has no header; send it before the chunks"));
      return;
    }
    {
      absl::MutexLock lock(&mu_);
      phase_ = Phase::kWaits;
    }
    session_ = SessionId(first.header().session());
    attempt_ = first.header().attempt();
    const auto answer = store_.JudgeOffer(session_, attempt_);
    if (!answer.ok()) {
      Answer(answer.status());
    } else if (answer->has_value()) {
      Answer(**answer);
    } else if (const absl::Status ready = ready_ ? ready_() : absl::OkStatus(); !ready.ok()) {
      Answer(ready);
    } else if (turns_ != nullptr) {
      AwaitTurn();
    } else {
      GoOn();
    }
  }

  // The turn may come, and the session may end, on any thread and after the call's end.
  void AwaitTurn() {
    const auto go = [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->GoOn();
    };
    const auto end = [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->Answer(OfferLostSession(stream->session_));
    };
    const absl::Status waits = turns_->Wait({this, session_, go, end});
    if (!waits.ok()) return Answer(waits);
    if (turn_.Begin(this)) Answer(absl::CancelledError());
  }

  // The call may end on another thread before this returns.
  void GoOn() {
    const std::shared_ptr<InitializeStream> self = shared_from_this();
    const PushId id = store_.BeginInitialize(
        session_, attempt_,
        [self](absl::StatusOr<InitializeStart> start) { self->Take(std::move(start)); },
        [weak = weak_from_this()] {
          if (const auto stream = weak.lock()) stream->Answer(OfferLostSession(stream->session_));
        });
    if (wait_.Begin(id)) Answer(absl::CancelledError());
  }

  // Another offer may have become the parameters meanwhile.
  void Take(absl::StatusOr<InitializeStart> start) {
    if (!start.ok()) {
      Answer(start.status());
    } else if (start->parameters == nullptr) {
      Answer(start->answer);
    } else {
      Receive(std::move(start->parameters));
    }
  }

  // The lock keeps Answer() from finishing the call before its read has begun.
  void Receive(std::unique_ptr<PendingPush> parameters) {
    absl::ReleasableMutexLock lock(&mu_);
    if (phase_ == Phase::kAnswered) {
      lock.Release();
      store_.AbandonInitialize(std::move(parameters));
      return;
    }
    parameters_ = std::move(parameters);
    phase_ = Phase::kReceives;
    StartRead(&message_);
  }

  void AddChunk() {
    absl::StatusOr<TensorChunk> chunk =
        ReadArrivedChunk<v1::InitializeParamsRequest>(message_, nullptr, *parameters_->layout());
    const ArrivedChunk arrived(chunk, message_.Length());
    const absl::Status added =
        chunk.ok() ? parameters_->Add(*std::move(chunk), nullptr, &transforms_) : chunk.status();
    if (added.ok()) {
      arrived.Count(store_.wire_bytes());
      StartRead(&message_);
    } else {
      Answer(added);
    }
  }

  // From here only the task answers. So the call keeps its turn, and no second vector arrives, also
  // if the session ends meanwhile.
  void Offer() {
    if (!MayAnswer()) return;
    const auto parameters = std::make_shared<std::unique_ptr<PendingPush>>(std::move(parameters_));
    store_.executors().arrivals->Run([self = shared_from_this(), parameters] {
      const PushId id = self->store_.FinishInitialize(
          std::move(*parameters), [self](const auto& outcome) { self->Send(outcome); });
      if (self->gathering_.Begin(id)) self->Send(absl::CancelledError());
    });
  }

  void Answer(const absl::StatusOr<InitializeOutcome>& outcome) {
    if (MayAnswer()) Send(outcome);
  }

  void Send(const absl::StatusOr<InitializeOutcome>& outcome) {
    if (outcome.ok()) {
      v1::InitializeParamsResponse response;
      response.set_accepted(outcome->accepted);
      response.set_step(outcome->step.value());
      *response_ = EncodeMessage(response);
    }
    Finish(ToGrpcStatus(outcome.status()));
  }

  bool MayAnswer() {
    absl::MutexLock lock(&mu_);
    return std::exchange(phase_, Phase::kAnswered) != Phase::kAnswered;
  }

  grpc::ByteBuffer* const response_;
  const TransformRegistry& transforms_;
  OfferTurns* const turns_;  // null: the store has them
  const std::function<absl::Status()> ready_;
  ParameterStore& store_;
  SessionId session_;
  uint32_t attempt_ = 0;
  grpc::ByteBuffer message_;
  std::unique_ptr<PendingPush> parameters_;  // while they are received
  CallWait<const void*> turn_;               // if the store has none
  CallWait<PushId> wait_;                    // until it is let in
  CallWait<PushId> gathering_;               // for the parts of other servers
  std::shared_ptr<InitializeStream> self_;   // until the call is done

  absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kAwaitsHeader;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServeInitialize(grpc::ByteBuffer* response,
                                                           const TransformRegistry& transforms,
                                                           OfferTurns* turns,
                                                           std::function<absl::Status()> ready,
                                                           ParameterStore& store) {
  const auto stream =
      std::make_shared<InitializeStream>(response, transforms, turns, std::move(ready), store);
  stream->Start();
  return stream.get();
}

}  // namespace sluice

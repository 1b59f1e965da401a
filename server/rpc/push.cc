#include "server/rpc/push.h"

#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/base/parallel.h"
#include "common/wire/chunk.h"
#include "common/wire/layout.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/arrived_chunk.h"
#include "server/rpc/call_canceller.h"
#include "server/rpc/call_wait.h"
#include "server/shard/call_span.h"

namespace sluice {
namespace {

// gRPC reads one message after the other, so no lock is needed. The store may cancel the stream
// while it ends or after it has ended, so the store's callback holds it weakly, and it uses the
// call and not its context.
class PushStream final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<PushStream> {
 public:
  PushStream(grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
             const SharedMemories& memories, PushLanes& lanes, const TransformRegistry& transforms,
             ParameterStore& store)
      : context_(context),
        call_(*context),
        response_(response),
        memories_(memories),
        lanes_(lanes),
        transforms_(transforms),
        store_(store),
        wait_([&store](PushId id) { return store.CancelPush(id); }),
        gathering_([&store](PushId id) { return store.CancelGathering(id); }) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (ok) store_.wire_bytes().AddReceived(message_.Length());
    if (phase_ == Phase::kAwaitsHeader) {
      Begin(ok);
    } else if (ok) {
      Take();
    } else if (!context_->IsCancelled()) {
      End();
    } else {
      span_.End();
      Finish(grpc::Status::CANCELLED);  // the stream broke, perhaps after the last chunk
    }
  }

  // If two threads notice that the push is cancelled while it waits, one of them ends the call.
  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
    if (gathering_.Cancel()) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    if (phase_ == Phase::kReceives) push_ = gathered_->End().push;
    // Only here it is known whether the stream of an incomplete push was ended by its sender or
    // broke.
    if (push_ != nullptr) {
      store_.AbandonPush(std::move(push_),
                         context_->IsCancelled() ? Abandoned::kAborted : Abandoned::kRejected);
    }
    if (name_.call != 0) lanes_.Close(name_);
    self_.reset();
  }

 private:
  enum class Phase {
    kAwaitsHeader,  // or waits at its header until the store admits it
    kReceives,      // messages are read, one after the other
    kEnded,         // no more messages come; perhaps other servers' parts are missing
  };

  void Begin(bool ok) {
    const PushId id = store_.BeginPush(
        ok ? ReadHeader() : NoHeader(),
        [this](absl::StatusOr<PushStart> start) { GoOn(std::move(start)); },
        [weak = weak_from_this()] {
          if (const std::shared_ptr<PushStream> stream = weak.lock()) stream->call_.Cancel();
        });
    if (wait_.Begin(id)) Finish(grpc::Status::CANCELLED);
  }

  absl::StatusOr<PushHeader> ReadHeader() {
    v1::PushGradientsRequest message;
    if (!DecodeMessage(message_, &message) || !message.has_header()) return NoHeader();
    name_ = {SessionId(message.header().session()), message.header().call_number()};
    return FromProto(message.header());
  }

  static absl::Status NoHeader() {
    return MakeError(Reason::kMissingHeader, "the push has no header; send it before the chunks");
  }

  void GoOn(absl::StatusOr<PushStart> start) {
    if (!start.ok()) {
      Answer(start.status());
    } else if (start->push == nullptr) {
      Answer(start->answer);
    } else {
      const PushHeader& header = start->push->header();
      const absl::optional<SenderMemory> memory = memories_.Find(header.session);
      memory_ = memory.value_or(nullptr);
      unmapped_ = !memory.has_value();
      span_.Begin(store_, "push", header.session, header.step);
      gathered_ =
          std::make_shared<GatheredPush>(std::move(start->push), transforms_, store_.parallel());
      if (name_.call != 0) lanes_.Open(name_, gathered_);
      phase_ = Phase::kReceives;
      StartRead(&message_);
    }
  }

  void Take() {
    absl::StatusOr<TensorChunk> chunk =
        ReadArrivedChunk<v1::PushGradientsRequest>(message_, memory_, gathered_->layout());
    if (unmapped_ && ReasonOf(chunk.status()) == Reason::kBadChunk) chunk = Unmapped();
    if (!chunk.ok() || chunk->work() <= kPartElements) return GoOnIf(TakeOne(std::move(chunk)));
    // The next message is read after that, so nothing else happens to the call meanwhile.
    const auto large = std::make_shared<TensorChunk>(*std::move(chunk));
    store_.executors().arrivals->Run([this, large] { GoOnIf(TakeChunk(std::move(*large))); });
  }

  void GoOnIf(bool taken) {
    if (taken) {
      StartRead(&message_);
    } else {
      End();
    }
  }

  bool TakeOne(absl::StatusOr<TensorChunk> chunk) {
    const bool none = ReasonOf(chunk.status()) == Reason::kBadArgument;
    return none ? TakeOther(chunk.status()) : TakeChunk(std::move(chunk));
  }

  static absl::Status Unmapped() {
    return MakeError(Reason::kUnknownSession,
                     "the session's stream has ended, and with it the memory that the worker "
                     "shared; join again");
  }

  bool TakeChunk(absl::StatusOr<TensorChunk> chunk) {
    const bool encoded = chunk.ok() && chunk->encoded.has_value();
    const TraceSpan decode(encoded ? store_.trace() : nullptr, span_.row(), "decode");
    const ArrivedChunk arrived(chunk, message_.Length());
    if (chunk.ok() && MayChangeEarly(*chunk)) CopyPieces(*chunk);
    if (!gathered_->Add(std::move(chunk))) return false;
    arrived.Count(store_.wire_bytes());
    return true;
  }

  // With several servers, the worker writes its memory again when the first one has answered the
  // push. Another one may not have added its part by then. A chunk that is larger than the vector
  // will be refused.
  bool MayChangeEarly(const TensorChunk& chunk) const {
    return chunk.foreign && store_.is_striped() && chunk.size() <= gathered_->layout().size();
  }

  // Takes a message without a chunk: ids of rows, or the summary.
  bool TakeOther(const absl::Status& otherwise) {
    v1::PushGradientsRequest message;
    if (!DecodeMessage(message_, &message)) return gathered_->Add(otherwise);
    if (message.has_rows()) {
      return gathered_->AddIds(FromProto(message.rows(), gathered_->layout()));
    }
    return message.has_summary() ? gathered_->Summarize(FromProto(message.summary()))
                                 : gathered_->Add(otherwise);
  }

  // No more messages come. The push's error may have come through a lane.
  void End() {
    span_.End();
    phase_ = Phase::kEnded;
    GatheredPush::Gathered gathered = gathered_->End();
    const PushCallback done = [this](const auto& outcome) { Answer(outcome); };
    const absl::Status complete = gathered.push->CheckComplete();
    if (!gathered.error.ok()) {
      store_.RefusePush(std::move(gathered.push), gathered.error, done);
    } else if (complete.ok()) {
      Gather(std::move(gathered.push), done);
    } else {
      push_ = std::move(gathered.push);
      Answer(complete);
    }
  }

  // Other servers may not have their parts yet, and the call may end before they have.
  void Gather(std::unique_ptr<PendingPush> push, const PushCallback& done) {
    const std::shared_ptr<PushStream> self = shared_from_this();  // it may be answered at once
    const PushId id = store_.FinishPush(std::move(push), done);
    if (gathering_.Begin(id)) Finish(grpc::Status::CANCELLED);
  }

  void Answer(const absl::StatusOr<PushOutcome>& outcome) {
    if (outcome.ok()) *response_ = EncodeMessage(ToProto(*outcome));
    Finish(ToGrpcStatus(outcome.status()));
  }

  grpc::CallbackServerContext* const context_;  // until OnDone() has returned
  CallCanceller call_;
  grpc::ByteBuffer* const response_;
  const SharedMemories& memories_;
  PushLanes& lanes_;
  const TransformRegistry& transforms_;
  ParameterStore& store_;
  SenderMemory memory_;    // null if the worker shares none
  bool unmapped_ = false;  // the worker may have shared memory until its session's stream ended
  grpc::ByteBuffer message_;
  Phase phase_ = Phase::kAwaitsHeader;
  LaneName name_;                           // of this call; number 0: it has no lanes
  std::shared_ptr<GatheredPush> gathered_;  // once the store has admitted the push
  std::unique_ptr<PendingPush> push_;       // an incomplete push whose stream has ended
  CallSpan span_;                           // while it arrives
  std::shared_ptr<PushStream> self_;        // until the call is done
  CallWait<PushId> wait_;                   // at its header
  CallWait<PushId> gathering_;              // for the parts of other servers
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServePush(grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* response,
                                                     const SharedMemories& memories,
                                                     PushLanes& lanes,
                                                     const TransformRegistry& transforms,
                                                     ParameterStore& store) {
  const auto stream =
      std::make_shared<PushStream>(context, response, memories, lanes, transforms, store);
  stream->Start();
  return stream.get();
}

}  // namespace sluice

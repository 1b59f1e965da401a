#include "server/grpc_push.h"

#include <memory>
#include <utility>

#include "common/error.h"
#include "common/wire.h"
#include "common/wire_chunk.h"
#include "common/wire_status.h"
#include "server/call_span.h"

namespace sluice {
namespace {

// Reads are strictly one after another, so no lock is needed. The shard may want to end the stream
// when it is gone already: it holds it weakly.
class PushStream final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<PushStream> {
 public:
  PushStream(grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
             const SharedMemories& memories, Shard& shard)
      : context_(context), response_(response), memories_(memories), shard_(shard) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (ok) shard_.CountWire(message_.Length(), 0);
    if (push_ == nullptr) {
      Begin(ok);
    } else if (ok) {
      Take();
    } else {
      End();
    }
  }

  void OnDone() override {
    // Only now is it known whether the stream of a push that is not whole was ended or broke.
    if (push_ != nullptr) {
      shard_.AbandonPush(std::move(push_),
                         context_->IsCancelled() ? Abandoned::kAborted : Abandoned::kRejected);
    }
    self_.reset();
  }

 private:
  void Begin(bool ok) {
    shard_.BeginPush(
        ok ? ReadHeader() : NoHeader(),
        [this](absl::StatusOr<PushStart> start) { GoOn(std::move(start)); },
        [weak = weak_from_this()] {
          if (const std::shared_ptr<PushStream> stream = weak.lock()) stream->context_->TryCancel();
        });
  }

  absl::StatusOr<PushHeader> ReadHeader() const {
    v1::PushGradientsRequest message;
    if (!DecodeMessage(message_, &message) || !message.has_header()) return NoHeader();
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
      push_ = std::move(start->push);
      memory_ = memories_.Find(push_->header().session);
      span_.Begin(shard_, "push", push_->header().session, push_->header().step);
      StartRead(&message_);
    }
  }

  void Take() {
    absl::Status taken = TakeChunk();
    // It holds no chunk.
    if (ReasonOf(taken) == Reason::kBadArgument) taken = TakeSummary(taken);
    if (taken.ok()) {
      StartRead(&message_);
      return;
    }
    shard_.RefusePush(std::move(push_), taken,
                      [this](absl::StatusOr<PushOutcome> outcome) { Answer(std::move(outcome)); });
  }

  absl::Status TakeChunk() {
    absl::StatusOr<TensorChunk> chunk = DecodeChunk<v1::PushGradientsRequest>(message_, memory_);
    if (!chunk.ok()) return chunk.status();
    Trace* const trace = chunk->encoded.has_value() ? shard_.trace() : nullptr;
    const TraceSpan decode(trace, span_.row(), "decode");
    return shard_.AddToPush(*push_, *std::move(chunk));
  }

  absl::Status TakeSummary(const absl::Status& otherwise) {
    v1::PushGradientsRequest message;
    if (!DecodeMessage(message_, &message) || !message.has_summary()) return otherwise;
    const absl::StatusOr<PushSummary> summary = FromProto(message.summary());
    return summary.ok() ? push_->Summarize(*summary) : summary.status();
  }

  void End() {
    span_.End();
    const absl::Status complete = push_->gradient().CheckComplete();
    if (!complete.ok()) {
      Answer(complete);
      return;
    }
    shard_.FinishPush(std::move(push_),
                      [this](absl::StatusOr<PushOutcome> outcome) { Answer(std::move(outcome)); });
  }

  void Answer(const absl::StatusOr<PushOutcome>& outcome) {
    if (outcome.ok()) *response_ = EncodeMessage(ToProto(*outcome));
    Finish(ToGrpcStatus(outcome.status()));
  }

  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
  const SharedMemories& memories_;
  Shard& shard_;
  SenderMemory memory_;
  grpc::ByteBuffer message_;
  std::unique_ptr<PendingPush> push_;
  CallSpan span_;                     // while it arrives
  std::shared_ptr<PushStream> self_;  // until the call is done
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServePush(grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* response,
                                                     const SharedMemories& memories, Shard& shard) {
  const auto stream = std::make_shared<PushStream>(context, response, memories, shard);
  stream->Start();
  return stream.get();
}

}  // namespace sluice

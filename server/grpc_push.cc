#include "server/grpc_push.h"

#include <memory>
#include <utility>

#include "common/error.h"
#include "common/wire.h"
#include "common/wire_status.h"
#include "server/grpc_chunk.h"

namespace sluice {
namespace {

// Reads are strictly one after another, so no lock is needed.
class PushStream final : public grpc::ServerReadReactor<v1::PushGradientsRequest> {
 public:
  PushStream(const grpc::CallbackServerContext* context, v1::PushGradientsResponse* response,
             Shard& shard)
      : context_(context), response_(response), shard_(shard) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (push_ == nullptr) {
      Begin(ok);
    } else if (ok) {
      AddChunk();
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
    delete this;
  }

 private:
  void Begin(bool ok) {
    absl::StatusOr<PushHeader> header =
        MakeError(Reason::kMissingHeader, "the push has no header; send it before the chunks");
    if (ok && message_.has_header()) header = FromProto(message_.header());
    absl::StatusOr<PushStart> start = shard_.BeginPush(header);
    if (!start.ok()) {
      Answer(start.status());
    } else if (start->push == nullptr) {
      Answer(start->answer);
    } else {
      push_ = std::move(start->push);
      StartRead(&message_);
    }
  }

  void AddChunk() {
    const absl::Status added = AddChunkTo(message_, push_->gradient);
    if (added.ok()) {
      StartRead(&message_);
      return;
    }
    shard_.AbandonPush(std::move(push_), Abandoned::kRejected);
    Answer(added);
  }

  void End() {
    const absl::Status complete = push_->gradient.CheckComplete();
    if (!complete.ok()) {
      Answer(complete);
      return;
    }
    shard_.FinishPush(std::move(push_),
                      [this](absl::StatusOr<PushOutcome> outcome) { Answer(std::move(outcome)); });
  }

  void Answer(const absl::StatusOr<PushOutcome>& outcome) {
    if (outcome.ok()) *response_ = ToProto(*outcome);
    Finish(ToGrpcStatus(outcome.status()));
  }

  const grpc::CallbackServerContext* const context_;
  v1::PushGradientsResponse* const response_;
  Shard& shard_;
  v1::PushGradientsRequest message_;
  std::unique_ptr<PendingPush> push_;
};

}  // namespace

grpc::ServerReadReactor<v1::PushGradientsRequest>* ServePush(
    const grpc::CallbackServerContext* context, v1::PushGradientsResponse* response, Shard& shard) {
  return new PushStream(context, response, shard);
}

}  // namespace sluice

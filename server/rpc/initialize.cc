#include "server/rpc/initialize.h"

#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/status.h"

namespace sluice {
namespace {

class InitializeStream final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  InitializeStream(grpc::ByteBuffer* response, const TransformRegistry& transforms, Shard& shard)
      : response_(response), transforms_(transforms), shard_(shard) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (ok) shard_.CountWire(message_.Length(), 0);
    if (parameters_ == nullptr) {
      Begin(ok);
    } else if (ok) {
      AddChunk();
    } else {
      Answer(shard_.FinishInitialize(std::move(parameters_)));
    }
  }

  void OnDone() override { delete this; }

 private:
  void Begin(bool ok) {
    v1::InitializeParamsRequest first;
    if (!ok || !DecodeMessage(message_, &first) || !first.has_header()) {
      Answer(MakeError(Reason::kMissingHeader, "no header; send it before the chunks"));
      return;
    }
    absl::StatusOr<InitializeStart> start =
        shard_.BeginInitialize(SessionId(first.header().session()));
    if (!start.ok()) {
      Answer(start.status());
    } else if (start->parameters == nullptr) {
      Answer(start->answer);
    } else {
      parameters_ = std::move(start->parameters);
      StartRead(&message_);
    }
  }

  void AddChunk() {
    absl::StatusOr<TensorChunk> chunk = DecodeChunk<v1::InitializeParamsRequest>(message_);
    const absl::Status added =
        chunk.ok() ? parameters_->Add(*std::move(chunk), nullptr, &transforms_) : chunk.status();
    if (added.ok()) {
      StartRead(&message_);
    } else {
      Answer(added);
    }
  }

  void Answer(const absl::StatusOr<InitializeOutcome>& outcome) {
    if (outcome.ok()) {
      v1::InitializeParamsResponse response;
      response.set_accepted(outcome->accepted);
      response.set_step(outcome->step.value());
      *response_ = EncodeMessage(response);
    }
    Finish(ToGrpcStatus(outcome.status()));
  }

  grpc::ByteBuffer* const response_;
  const TransformRegistry& transforms_;
  Shard& shard_;
  grpc::ByteBuffer message_;
  std::unique_ptr<StagedVector> parameters_;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServeInitialize(grpc::ByteBuffer* response,
                                                           const TransformRegistry& transforms,
                                                           Shard& shard) {
  return new InitializeStream(response, transforms, shard);
}

}  // namespace sluice

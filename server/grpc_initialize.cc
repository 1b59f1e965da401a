#include "server/grpc_initialize.h"

#include <memory>
#include <utility>

#include "common/error.h"
#include "common/wire_status.h"
#include "server/grpc_chunk.h"

namespace sluice {
namespace {

class InitializeStream final : public grpc::ServerReadReactor<v1::InitializeParamsRequest> {
 public:
  InitializeStream(v1::InitializeParamsResponse* response, Shard& shard)
      : response_(response), shard_(shard) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
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
    if (!ok || !message_.has_header()) {
      Answer(MakeError(Reason::kMissingHeader, "no header; send it before the chunks"));
      return;
    }
    absl::StatusOr<InitializeStart> start =
        shard_.BeginInitialize(SessionId(message_.header().session()));
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
    const absl::Status added = AddChunkTo(message_, *parameters_);
    if (added.ok()) {
      StartRead(&message_);
    } else {
      Answer(added);
    }
  }

  void Answer(const absl::StatusOr<InitializeOutcome>& outcome) {
    if (outcome.ok()) {
      response_->set_accepted(outcome->accepted);
      response_->set_step(outcome->step.value());
    }
    Finish(ToGrpcStatus(outcome.status()));
  }

  v1::InitializeParamsResponse* const response_;
  Shard& shard_;
  v1::InitializeParamsRequest message_;
  std::unique_ptr<StagedVector> parameters_;
};

}  // namespace

grpc::ServerReadReactor<v1::InitializeParamsRequest>* ServeInitialize(
    v1::InitializeParamsResponse* response, Shard& shard) {
  return new InitializeStream(response, shard);
}

}  // namespace sluice

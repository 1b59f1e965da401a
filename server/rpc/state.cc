#include "server/rpc/state.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/wire/status.h"
#include "server/rpc/byte_stream.h"
#include "server/rpc/call_wait.h"

namespace sluice {
namespace {

class PullStateStream final : public ByteStream,
                              public std::enable_shared_from_this<PullStateStream> {
 public:
  explicit PullStateStream(Shard& shard)
      : ByteStream(shard.store().wire_bytes()),
        shard_(shard),
        wait_([&shard](StateRequestId id) { return shard.states().Cancel(id); }) {}

  // The call may end on another thread before this returns.
  void Start(SessionId session, absl::optional<uint64_t> steps) {
    const std::shared_ptr<PullStateStream> self = self_ = shared_from_this();
    const auto done = [this](const absl::StatusOr<WorkerState>& state) { Answer(state); };
    if (wait_.Begin(shard_.states().Pull(session, steps, done))) Finish(grpc::Status::CANCELLED);
  }

  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { self_.reset(); }

 private:
  void Answer(const absl::StatusOr<WorkerState>& state) {
    if (!state.ok()) return Finish(ToGrpcStatus(state.status()));
    v1::PullStateResponse first;
    first.set_step(state->step.value());
    first.set_own(state->bytes == nullptr);
    if (first.own()) return Send(EncodeMessage(first), 0, {}, nullptr);
    first.set_checksum(state->checksum);
    first.set_optimizer_steps(state->optimizer_steps);
    Send(EncodeMessage(first), v1::PullStateResponse::kDataFieldNumber, {*state->bytes},
         state->bytes);
  }

  Shard& shard_;
  CallWait<StateRequestId> wait_;
  std::shared_ptr<PullStateStream> self_;  // until the call is done
};

// One message is read after the other.
class OfferStateStream final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  OfferStateStream(grpc::ByteBuffer* response, Shard& shard) : response_(response), shard_(shard) {}

  void Start() { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    const bool begun = offer_ != StateOfferId();
    if (begun && !ok) return End(HandOn());
    const absl::Status taken = begun ? Add() : Begin(ok);
    if (!taken.ok() || answered_) return End(taken);
    StartRead(&message_);
  }

  void OnDone() override { delete this; }

 private:
  absl::Status Begin(bool ok) {
    v1::OfferStateRequest first;
    if (!ok || !DecodeMessage(message_, &first) || !first.has_header()) {
      return MakeError(Reason::kMissingHeader, "the offer has no header; send it before the bytes");
    }
    const auto begun = shard_.states().BeginOffer(SessionId(first.header().session()), &most_);
    if (!begun.ok()) return begun.status();
    offer_ = *begun;
    checksum_ = first.header().checksum();
    answered_ = !first.header().failure().empty();
    if (answered_) shard_.states().Fail(offer_, first.header().failure());
    return absl::OkStatus();
  }

  absl::Status Add() {
    shard_.store().wire_bytes().AddReceived(message_.Length());
    v1::OfferStateRequest part;
    if (!DecodeMessage(message_, &part) || part.data().empty()) {
      return MakeError(Reason::kBadArgument, "a message of the offer has no bytes");
    }
    if (part.data().size() > most_ - bytes_.size()) {
      const std::string why = absl::StrCat("it has ", bytes_.size() + part.data().size(),
                                           " or more bytes, expected at most ", most_);
      shard_.states().Fail(offer_, why);
      return MakeError(Reason::kBadArgument, absl::StrCat("the model is too large: ", why));
    }
    bytes_.append(part.data());
    return absl::OkStatus();
  }

  absl::Status HandOn() {
    if (Checksum(bytes_) != checksum_) {
      return MakeError(Reason::kCorruptChunk, "the model was damaged on its way; offer it again");
    }
    shard_.states().HandOn(offer_, std::move(bytes_), checksum_);
    return absl::OkStatus();
  }

  // The offer ends before the call does, so that the worker may begin another one.
  void End(const absl::Status& status) {
    shard_.states().EndOffer(offer_);
    if (status.ok()) *response_ = EncodeMessage(v1::OfferStateResponse());
    Finish(ToGrpcStatus(status));
  }

  grpc::ByteBuffer* const response_;
  Shard& shard_;
  grpc::ByteBuffer message_;
  StateOfferId offer_;     // 0 before the header
  bool answered_ = false;  // no bytes are needed
  uint64_t checksum_ = 0;
  uint64_t most_ = 0;  // bytes
  std::string bytes_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullState(const v1::PullStateRequest& request,
                                                           Shard& shard) {
  const auto stream = std::make_shared<PullStateStream>(shard);
  absl::optional<uint64_t> steps;
  if (request.has_optimizer_steps()) steps = request.optimizer_steps();
  stream->Start(SessionId(request.session()), steps);
  return stream.get();
}

grpc::ServerReadReactor<grpc::ByteBuffer>* ServeOfferState(grpc::ByteBuffer* response,
                                                           Shard& shard) {
  auto* const stream = new OfferStateStream(response, shard);
  stream->Start();
  return stream;
}

}  // namespace sluice

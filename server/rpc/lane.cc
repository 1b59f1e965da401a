#include "server/rpc/lane.h"

#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/base/parallel.h"
#include "common/wire/chunk.h"
#include "common/wire/status.h"
#include "server/rpc/arrived_chunk.h"
#include "server/rpc/call_canceller.h"
#include "server/rpc/call_wait.h"

namespace sluice {
namespace {

// A lane waits in a table until its push or pull begins, or the lane is cancelled. When Begin()
// returns, the lane may be finished, but it is not deleted: gRPC calls OnDone() only after the
// callback that called Begin() has returned.
template <typename Call>
class Wait {
 public:
  // `lane` stands for the lane in `table`, which outlives this.
  Wait(LaneTable<Call>& table, const void* lane)
      : table_(table),
        lane_(lane),
        wait_([&table, lane](const LaneName& name) { return table.Cancel(name, lane); }) {}

  // See LaneTable::Find. Also BAD_ARGUMENT if the lane names no call, and CANCELLED if the lane was
  // cancelled before `found` was called.
  absl::Status Begin(const v1::Lane& lane, typename LaneTable<Call>::Found found) {
    if (lane.call_number() == 0) {
      return MakeError(Reason::kBadArgument,
                       "field call_number is 0, expected the number of a push or pull");
    }
    const LaneName name = {SessionId(lane.session()), lane.call_number()};
    const absl::Status waits = table_.Find(name, lane_, std::move(found));
    if (!waits.ok()) return waits;
    return wait_.Begin(name) ? absl::CancelledError() : absl::OkStatus();
  }

  // Returns true if the caller has to end the lane.
  bool Cancel() { return wait_.Cancel(); }

 private:
  LaneTable<Call>& table_;
  const void* const lane_;
  CallWait<LaneName> wait_;
};

class PushLaneStream final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  PushLaneStream(grpc::ByteBuffer* response, PushLanes& table, ParameterStore& store)
      : response_(response), wait_(table, this), store_(store) {}

  void Start() { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (ok) store_.wire_bytes().AddReceived(message_.Length());
    if (push_ == nullptr) {
      Begin(ok);
    } else if (ok) {
      Take(ReadArrivedChunk<v1::PushGradientsRequest>(message_, nullptr, push_->layout()));
    } else {
      End(push_->error());
    }
  }

  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

 private:
  void Begin(bool ok) {
    v1::PushGradientsRequest message;
    if (!ok || !DecodeMessage(message_, &message) || !message.has_lane()) {
      End(MakeError(Reason::kMissingHeader,
                    "the lane names no push; send a Lane message before the chunks"));
      return;
    }
    const absl::Status begun =
        wait_.Begin(message.lane(), [this](auto push) { GoOn(std::move(push)); });
    if (!begun.ok()) End(begun);
  }

  void GoOn(std::shared_ptr<GatheredPush> push) {
    push_ = std::move(push);
    if (push_ == nullptr) {
      End(absl::OkStatus());
    } else {
      StartRead(&message_);
    }
  }

  // A large chunk, which can only be an encoded one, is decoded by another thread.
  void Take(absl::StatusOr<TensorChunk> chunk) {
    if (!chunk.ok() || chunk->work() <= kPartElements) return Add(std::move(chunk));
    const auto large = std::make_shared<TensorChunk>(*std::move(chunk));
    store_.executors().arrivals->Run([this, large] { Add(std::move(*large)); });
  }

  void Add(absl::StatusOr<TensorChunk> chunk) {
    const ArrivedChunk arrived(chunk, message_.Length());
    if (push_->Add(std::move(chunk))) {
      arrived.Count(store_.wire_bytes());
      StartRead(&message_);
    } else {
      End(push_->error());
    }
  }

  void End(const absl::Status& status) {
    if (status.ok()) *response_ = EncodeMessage(v1::PushLaneResponse());
    Finish(ToGrpcStatus(status));
  }

  grpc::ByteBuffer* const response_;
  Wait<GatheredPush> wait_;
  ParameterStore& store_;
  grpc::ByteBuffer message_;
  std::shared_ptr<GatheredPush> push_;  // null before it was found
};

class PullLaneStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  PullLaneStream(grpc::CallbackServerContext& context, PullLanes& table, ParameterStore& store)
      : call_(std::make_shared<CallCanceller>(context)), wait_(table, this), store_(store) {}

  void Start(const grpc::ByteBuffer& request) {
    v1::Lane lane;
    if (!DecodeMessage(request, &lane)) {
      Finish(ToGrpcStatus(MakeError(Reason::kBadArgument, "the request is not a valid Lane")));
      return;
    }
    session_ = SessionId(lane.session());
    const absl::Status begun = wait_.Begin(lane, [this](auto chunks) { GoOn(std::move(chunks)); });
    if (!begun.ok()) Finish(ToGrpcStatus(begun));
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      WriteNext();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

 private:
  void GoOn(std::shared_ptr<SharedChunks> chunks) {
    chunks_ = std::move(chunks);
    if (chunks_ != nullptr) {
      chunks_->permit().OnEnd([call = call_] { call->Cancel(); });
      chunk_ = chunks_->Take();
    }
    if (chunk_ == nullptr) {
      Finish(grpc::Status::OK);
    } else {
      sending_.emplace(store_.active_pulls(), session_);
      WriteNext();
    }
  }

  // The write's completion may run on another thread at once, so nothing may follow the write.
  void WriteNext() {
    const grpc::ByteBuffer* const chunk = chunk_;
    store_.wire_bytes().AddSent(chunk->Length());
    chunk_ = chunks_->Take();
    if (chunk_ == nullptr) {
      StartWriteAndFinish(chunk, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(chunk);
    }
  }

  const std::shared_ptr<CallCanceller> call_;
  Wait<SharedChunks> wait_;
  ParameterStore& store_;
  SessionId session_;
  std::shared_ptr<SharedChunks> chunks_;         // null before they were found
  absl::optional<ActivePulls::Stream> sending_;  // from then until gRPC has sent them
  const grpc::ByteBuffer* chunk_ = nullptr;      // the next to write; null: none
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServePushLane(grpc::ByteBuffer* response, Lanes& lanes,
                                                         ParameterStore& store) {
  auto* const stream = new PushLaneStream(response, lanes.pushes, store);
  stream->Start();
  return stream;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullLane(grpc::CallbackServerContext& context,
                                                          const grpc::ByteBuffer& request,
                                                          Lanes& lanes, ParameterStore& store) {
  auto* const stream = new PullLaneStream(context, lanes.pulls, store);
  stream->Start(request);
  return stream;
}

}  // namespace sluice

#include "server/rpc/pull.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/shard/call_span.h"

namespace sluice {
namespace {

// First waits in the shard, then writes. If the call is cancelled while it waits, two threads may
// notice; the one that takes the pull out of the shard finishes the call.
class PullStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  PullStream(const std::string& peer, PullPermit permit, SnapshotChunks& chunks, PullLanes& lanes,
             Shard& shard)
      : permit_(std::move(permit)),
        snapshot_chunks_(chunks),
        lanes_(lanes),
        shard_(shard),
        checksums_(ChecksumsFor(peer)) {}

  void Start(const grpc::ByteBuffer& bytes) {
    v1::PullParamsRequest request;
    if (!DecodeMessage(bytes, &request)) {
      Finish(ToGrpcStatus(MakeError(Reason::kBadArgument, "the request is no PullParamsRequest")));
      return;
    }
    if (request.has_encoding()) {
      auto encoding = FromProto(request.encoding(), snapshot_chunks_.transforms());
      if (!encoding.ok()) {
        Finish(ToGrpcStatus(encoding.status()));
        return;
      }
      encoding_ = *std::move(encoding);
    }
    may_share_ = request.shared();
    name_ = {SessionId(request.session()), request.call_number()};
    const PullId id = shard_.Pull(FromProto(request), [this](absl::StatusOr<PullResult> result) {
      Begin(std::move(result));
    });
    if (id == PullId()) return;  // answered already: this object may be deleted
    bool cancelled = false;
    {
      absl::MutexLock lock(&mu_);
      id_ = id;
      cancelled = cancelled_;
    }
    if (cancelled) CancelWait(id);
  }

  void OnCancel() override {
    PullId id;
    {
      absl::MutexLock lock(&mu_);
      cancelled_ = true;
      id = id_;
    }
    CancelWait(id);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    if (inconsistent_) ReadNext();
    WriteNext();
  }

  void OnDone() override {
    if (name_.call != 0) lanes_.Close(name_);
    delete this;
  }

 private:
  void CancelWait(PullId id) {
    if (shard_.CancelPull(id)) Finish(grpc::Status::CANCELLED);
  }

  void Begin(absl::StatusOr<PullResult> result) {
    if (!result.ok()) {
      Finish(ToGrpcStatus(result.status()));
      return;
    }
    snapshot_ = std::move(result->snapshot);
    inconsistent_ = result->header.inconsistent;
    span_.Begin(shard_, "pull", name_.session, result->header.step);
    v1::PullParamsResponse response;
    *response.mutable_header() = ToProto(result->header);
    if (snapshot_ != nullptr && !inconsistent_) {
      const TraceSpan encode(shard_.trace(), span_.row(), "encode");
      const absl::Status chosen = ChooseChunks(response.mutable_header());
      if (!chosen.ok()) {
        Finish(ToGrpcStatus(chosen));
        return;
      }
    }
    message_ = EncodeMessage(response);
    next_ = &message_;
    if (chunks_ != nullptr && name_.call != 0) lanes_.Open(name_, chunks_);
    WriteNext();
  }

  absl::Status ChooseChunks(v1::PullHeader* header) {
    if (!encoding_.plain()) {
      auto encoded = snapshot_chunks_.Of(snapshot_, encoding_);
      if (!encoded.ok()) return encoded.status();
      header->set_step(encoded->step.value());
      chunks_ = std::make_shared<SharedChunks>(std::move(encoded->chunks));
      snapshot_ = nullptr;
    } else if (may_share_ && snapshot_->values.memory() != nullptr) {
      Share(header->mutable_shared());
    } else {
      chunks_ = std::make_shared<SharedChunks>(snapshot_chunks_.Of(snapshot_, checksums_));
    }
    return absl::OkStatus();
  }

  // The reader compares the generation to see whether the snapshot is still there.
  void Share(v1::SharedParameters* where) {
    const SharedMemory& memory = *snapshot_->values.memory();
    *where->mutable_memory() = ToProto(memory.name());
    where->set_generation(memory.generation());
    snapshot_ = nullptr;
  }

  // The write's completion may run on another thread at once, so nothing may follow the write. The
  // last write also finishes the call.
  void WriteNext() {
    const grpc::ByteBuffer* const message = next_;
    shard_.CountWire(0, message->Length());
    if (HasNext()) {
      StartWrite(message);
    } else {
      span_.End();
      StartWriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK);
    }
  }

  // Chooses the next chunk. An inconsistent pull reads it later instead, so that it is as new as
  // possible.
  bool HasNext() {
    if (inconsistent_) return read_ < snapshot_->values.size();
    next_ = chunks_ != nullptr ? chunks_->Take() : nullptr;
    return next_ != nullptr;
  }

  void ReadNext() {
    const uint64_t end = std::min<uint64_t>(snapshot_->values.size(), read_ + kChunkElements);
    message_ = EncodePart(shard_.Newest(end), read_, end, checksums_);
    read_ = end;
  }

  const PullPermit permit_;
  SnapshotChunks& snapshot_chunks_;
  PullLanes& lanes_;
  Shard& shard_;
  const Checksums checksums_;  // of chunks without encoding
  bool may_share_ = false;
  Encoding encoding_;
  LaneName name_;             // of this call; number 0: it has no lanes
  CallSpan span_;             // while it is written
  grpc::ByteBuffer message_;  // the header; in an inconsistent read also each chunk
  const grpc::ByteBuffer* next_ = nullptr;
  std::shared_ptr<const Snapshot> snapshot_;
  std::shared_ptr<SharedChunks> chunks_;  // the chunks; null: none, or inconsistent
  bool inconsistent_ = false;             // chunks are read from the newest snapshot, one by one
  uint64_t read_ = 0;                     // number of elements read

  absl::Mutex mu_;
  PullId id_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePull(const grpc::ByteBuffer& request,
                                                      const std::string& peer, PullPermit permit,
                                                      SnapshotChunks& chunks, PullLanes& lanes,
                                                      Shard& shard) {
  auto* const stream = new PullStream(peer, std::move(permit), chunks, lanes, shard);
  stream->Start(request);
  return stream;
}

}  // namespace sluice

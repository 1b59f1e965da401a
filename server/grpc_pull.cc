#include "server/grpc_pull.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/error.h"
#include "common/wire.h"
#include "common/wire_chunk.h"
#include "common/wire_encoding.h"
#include "common/wire_status.h"
#include "server/call_span.h"

namespace sluice {
namespace {

// First waits in the shard, then writes; a call that is cancelled while it waits is taken out of
// the shard by whoever notices first, and then finished by that thread alone.
class PullStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  PullStream(const std::string& peer, PullPermit permit, SnapshotChunks& chunks, Shard& shard)
      : permit_(std::move(permit)),
        shared_chunks_(chunks),
        shard_(shard),
        checksums_(ChecksumsFor(peer)) {}

  void Start(const grpc::ByteBuffer& bytes) {
    v1::PullParamsRequest request;
    if (!DecodeMessage(bytes, &request)) {
      Finish(ToGrpcStatus(MakeError(Reason::kBadArgument, "the request is no PullParamsRequest")));
      return;
    }
    if (request.has_encoding()) {
      auto encoding = FromProto(request.encoding());
      if (!encoding.ok()) {
        Finish(ToGrpcStatus(encoding.status()));
        return;
      }
      encoding_ = *std::move(encoding);
    }
    may_share_ = request.shared();
    session_ = SessionId(request.session());
    const PullId id = shard_.Pull(FromProto(request), [this](absl::StatusOr<PullResult> result) {
      Begin(std::move(result));
    });
    if (id == PullId()) return;  // answered: this may be gone
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
    } else {
      WriteNext();
    }
  }

  void OnDone() override { delete this; }

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
    span_.Begin(shard_, "pull", session_, result->header.step);
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
    Write(&message_);
  }

  absl::Status ChooseChunks(v1::PullHeader* header) {
    if (!encoding_.plain()) {
      auto encoded = shared_chunks_.Of(snapshot_, encoding_);
      if (!encoded.ok()) return encoded.status();
      header->set_step(encoded->step.value());
      chunks_ = std::move(encoded->chunks);
      snapshot_ = nullptr;
    } else if (may_share_ && snapshot_->values.memory() != nullptr) {
      Share(header->mutable_shared());
    } else {
      chunks_ = shared_chunks_.Of(snapshot_, checksums_);
    }
    return absl::OkStatus();
  }

  // No chunks follow; the generation tells whether the snapshot is still there.
  void Share(v1::SharedParameters* where) {
    const SharedMemory& memory = *snapshot_->values.memory();
    *where->mutable_memory() = ToProto(memory.name());
    where->set_generation(memory.generation());
    snapshot_ = nullptr;
  }

  void WriteNext() {
    if (!inconsistent_) {
      Write(&(*chunks_)[next_++]);
      return;
    }
    const uint64_t begin = next_++ * kChunkElements;
    const uint64_t end = std::min<uint64_t>(snapshot_->values.size(), begin + kChunkElements);
    message_ = EncodePart(shard_.Newest(end), begin, end, checksums_);
    Write(&message_);
  }

  // The messages that follow the header.
  size_t Messages() const {
    if (chunks_ != nullptr) return chunks_->size();
    if (snapshot_ == nullptr) return 0;
    return (snapshot_->values.size() + kChunkElements - 1) / kChunkElements;
  }

  // Nothing may follow: its completion may run on another thread at once. The last message takes
  // the call's end with it.
  void Write(const grpc::ByteBuffer* message) {
    shard_.CountWire(0, message->Length());
    if (next_ == Messages()) {
      span_.End();
      StartWriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(message);
    }
  }

  const PullPermit permit_;
  SnapshotChunks& shared_chunks_;
  Shard& shard_;
  const Checksums checksums_;  // of what is not encoded
  bool may_share_ = false;
  Encoding encoding_;
  grpc::ByteBuffer message_;
  SessionId session_;
  CallSpan span_;  // while it is written
  std::shared_ptr<const Snapshot> snapshot_;
  std::shared_ptr<const ChunkMessages> chunks_;  // null for inconsistent reads
  bool inconsistent_ = false;
  size_t next_ = 0;  // of the messages after the header

  absl::Mutex mu_;
  PullId id_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePull(const grpc::ByteBuffer& request,
                                                      const std::string& peer, PullPermit permit,
                                                      SnapshotChunks& chunks, Shard& shard) {
  auto* const stream = new PullStream(peer, std::move(permit), chunks, shard);
  stream->Start(request);
  return stream;
}

}  // namespace sluice

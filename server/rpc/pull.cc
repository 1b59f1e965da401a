#include "server/rpc/pull.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/pull_wait.h"
#include "server/shard/call_span.h"

namespace sluice {
namespace {

// First waits in the store, then perhaps until other pulls release a step, then writes.
class PullStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<PullStream> {
 public:
  PullStream(grpc::CallbackServerContext& context, PullLimits& limits, SnapshotChunks& chunks,
             PullLanes& lanes, const SharedMemories& memories, ParameterStore& store)
      : call_(std::make_shared<CallCanceller>(context)),
        snapshot_chunks_(chunks),
        lanes_(lanes),
        memories_(memories),
        store_(store),
        checksums_(ChecksumsFor(context.peer())),
        wait_(limits, store) {}

  void Start(const grpc::ByteBuffer& bytes) {
    self_ = shared_from_this();
    const absl::Status read = ReadRequest(bytes);
    if (read.ok()) {
      Ask();
    } else {
      Finish(ToGrpcStatus(read));
    }
  }

  void OnCancel() override {
    if (wait_.Cancel()) Finish(grpc::Status::CANCELLED);
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
    sending_.reset();
    self_.reset();
  }

 private:
  absl::Status ReadRequest(const grpc::ByteBuffer& bytes) {
    v1::PullParamsRequest request;
    if (!DecodeMessage(bytes, &request)) {
      return MakeError(Reason::kBadArgument, "the request is not a valid PullParamsRequest");
    }
    name_ = {SessionId(request.session()), request.call_number()};
    if (request.has_encoding()) {
      auto encoding = FromProto(request.encoding(), snapshot_chunks_.transforms());
      if (!encoding.ok()) return encoding.status();
      encoding_ = *std::move(encoding);
    }
    request_ = FromProto(request);
    may_share_ = request.shared();
    return wait_.Enter(request_.session, call_);
  }

  // The call may end on another thread before this returns.
  void Ask() {
    const std::shared_ptr<PullStream> self = shared_from_this();
    const auto done = [this](absl::StatusOr<PullResult> result) { Begin(std::move(result)); };
    if (wait_.Ask(request_, done)) Finish(grpc::Status::CANCELLED);
  }

  void Begin(absl::StatusOr<PullResult> result) {
    if (!result.ok()) {
      Finish(ToGrpcStatus(result.status()));
      return;
    }
    inconsistent_ = result->header.inconsistent;
    const PullPermit::Turn turn = TakeTurn(*result);
    if (turn == PullPermit::Turn::kLater) return;
    if (turn == PullPermit::Turn::kEnded) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    Write(result->header, result->snapshot);
  }

  // Parameters in shared memory, and those of an inconsistent pull, keep no step in memory.
  PullPermit::Turn TakeTurn(PullResult& result) {
    if (result.snapshot == nullptr || inconsistent_ || Shares(*result.snapshot)) {
      return PullPermit::Turn::kNow;
    }
    const Step step = result.snapshot->step;
    const std::string encoding = encoding_.plain() ? "" : EncodingName(encoding_);
    return wait_.permit()->Hold({step, encoding}, [this] { Ask(); });
  }

  bool Shares(const Snapshot& snapshot) const {
    return encoding_.plain() && may_share_ && snapshot.values.memory() != nullptr &&
           snapshot.values.size() > 0;
  }

  void Write(const PullHeader& header, const std::shared_ptr<const Snapshot>& snapshot) {
    span_.Begin(store_, "pull", name_.session, header.step);
    sending_.emplace(store_.active_pulls(), name_.session);
    *header_.mutable_header() = ToProto(header);
    header_.mutable_header()->set_shares_memory(memories_.Shares(name_.session));
    if (inconsistent_) {
      size_ = snapshot->values.size();
      WriteHeader();
    } else if (snapshot == nullptr) {
      WriteHeader();
    } else if (Shares(*snapshot)) {
      Share(*snapshot, header_.mutable_header()->mutable_shared());
      WriteHeader();
    } else {
      AwaitChunks(snapshot);
    }
  }

  // The call cannot end before WriteChunks(): nothing is being read or written.
  void AwaitChunks(const std::shared_ptr<const Snapshot>& snapshot) {
    encode_.emplace(store_.trace(), span_.row(), "encode");
    const auto ready = [this](absl::StatusOr<SnapshotChunks::Chunks> chunks) {
      WriteChunks(std::move(chunks));
    };
    if (encoding_.plain()) {
      snapshot_chunks_.Get(snapshot, checksums_, ready);
    } else {
      snapshot_chunks_.Get(snapshot, encoding_, request_.session, ready);
    }
  }

  void WriteChunks(absl::StatusOr<SnapshotChunks::Chunks> chunks) {
    encode_.reset();
    if (!chunks.ok()) {
      Finish(ToGrpcStatus(chunks.status()));
      return;
    }
    store_.wire_bytes().AddChunksSent((*chunks)->bytes);
    chunks_ = std::make_shared<SharedChunks>(*std::move(chunks), wait_.permit());
    if (name_.call != 0) lanes_.Open(name_, chunks_);
    WriteHeader();
  }

  void WriteHeader() {
    message_ = EncodeMessage(header_);
    next_ = &message_;
    WriteNext();
  }

  // The reader compares the generation to see whether the snapshot is still there.
  static void Share(const Snapshot& snapshot, v1::SharedParameters* where) {
    const SharedMemory& memory = *snapshot.values.memory();
    *where->mutable_memory() = ToProto(memory.name());
    where->set_generation(memory.generation());
  }

  // The write's completion may run on another thread at once, so nothing may follow the write. The
  // last write also finishes the call.
  void WriteNext() {
    const grpc::ByteBuffer* const message = next_;
    store_.wire_bytes().AddSent(message->Length());
    if (HasNext()) {
      StartWrite(message);
    } else {
      span_.End();
      wait_.permit()->StopCounting();
      StartWriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK);
    }
  }

  // Chooses the next chunk. An inconsistent pull reads it later instead, so that it is as new as
  // possible.
  bool HasNext() {
    if (inconsistent_) return read_ < size_;
    next_ = chunks_ != nullptr ? chunks_->Take() : nullptr;
    return next_ != nullptr;
  }

  void ReadNext() {
    const uint64_t end = std::min<uint64_t>(size_, read_ + kChunkElements);
    message_ = EncodePart(store_.stripe().newest(end), read_, end, checksums_);
    store_.wire_bytes().AddChunkSent(ValueTransform::kFloat32,
                                     {(end - read_) * sizeof(float), message_.Length()});
    read_ = end;
  }

  const std::shared_ptr<CallCanceller> call_;
  SnapshotChunks& snapshot_chunks_;
  PullLanes& lanes_;
  const SharedMemories& memories_;
  ParameterStore& store_;
  const Checksums checksums_;  // of chunks without encoding
  PullWait wait_;
  PullRequest request_;
  bool may_share_ = false;
  Encoding encoding_;
  LaneName name_;                                // of this call; number 0: it has no lanes
  CallSpan span_;                                // while it is written
  absl::optional<ActivePulls::Stream> sending_;  // from then until gRPC has sent it
  absl::optional<TraceSpan> encode_;             // while its chunks are made
  v1::PullParamsResponse header_;
  grpc::ByteBuffer message_;  // the header; in an inconsistent read also each chunk
  const grpc::ByteBuffer* next_ = nullptr;
  std::shared_ptr<SharedChunks> chunks_;  // the chunks; null: none, or inconsistent
  bool inconsistent_ = false;             // chunks are read from the newest snapshot, one by one
  uint64_t size_ = 0;                     // of the vector, in such a pull
  uint64_t read_ = 0;                     // number of elements read
  std::shared_ptr<PullStream> self_;      // until the call is done
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePull(grpc::CallbackServerContext& context,
                                                      const grpc::ByteBuffer& request,
                                                      PullLimits& limits, SnapshotChunks& chunks,
                                                      PullLanes& lanes,
                                                      const SharedMemories& memories,
                                                      ParameterStore& store) {
  const auto stream = std::make_shared<PullStream>(context, limits, chunks, lanes, memories, store);
  stream->Start(request);
  return stream.get();
}

}  // namespace sluice

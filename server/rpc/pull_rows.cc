#include "server/rpc/pull_rows.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/base/parallel.h"
#include "common/encoding/codec.h"
#include "common/tensor/shared_floats.h"
#include "common/wire/chunk.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/lane_table.h"
#include "server/rpc/pull_wait.h"
#include "server/rpc/snapshot_chunks.h"
#include "server/rpc/wanted_rows.h"
#include "server/shard/call_span.h"

namespace sluice {
namespace {

// First waits, as a pull of parameters does, then writes. Between two writes it makes the next
// chunk, so nothing else happens to the call meanwhile.
class PullRowsStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                             public std::enable_shared_from_this<PullRowsStream> {
 public:
  PullRowsStream(grpc::CallbackServerContext& context, PullLimits& limits,
                 const TransformRegistry& transforms, ParameterStore& store)
      : call_(std::make_shared<CallCanceller>(context)),
        transforms_(transforms),
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
    if (ok) {
      MakeNext();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  void OnDone() override {
    sending_.reset();
    self_.reset();
  }

 private:
  absl::Status ReadRequest(const grpc::ByteBuffer& bytes) {
    v1::PullRowsRequest request;
    if (!DecodeMessage(bytes, &request)) {
      return MakeError(Reason::kBadArgument, "the request is not a valid PullRowsRequest");
    }
    request_ = FromProto(request.pull());
    request_.have_step.reset();
    request_.whole = true;  // all rows are of one step
    const absl::Status encoding = ReadEncoding(request.pull());
    if (!encoding.ok()) return encoding;
    const std::shared_ptr<const Layout> layout = store_.stripe().layout();
    // No session is open, so the worker joins again.
    if (layout == nullptr) return NoSessionOfLane(request_.session);
    auto wanted = WantedRows::Create(request, layout);
    if (!wanted.ok()) return wanted.status();
    wanted_ = *std::move(wanted);
    request_.row_bytes = wanted_.size() * sizeof(float);
    return wait_.Enter(request_.session, call_);
  }

  absl::Status ReadEncoding(const v1::PullParamsRequest& pull) {
    if (!pull.has_encoding()) return absl::OkStatus();
    auto encoding = FromProto(pull.encoding(), transforms_);
    if (!encoding.ok()) return encoding.status();
    encoding_ = *std::move(encoding);
    if (encoding_.transform == ValueTransform::kLowRank) {
      return MakeError(Reason::kBadArgument,
                       "rows cannot be pulled as low-rank, which encodes whole matrices; ask for "
                       "float16, bfloat16 or int8");
    }
    return CheckCanBePulled(encoding_);
  }

  // The call may end on another thread before this returns.
  void Ask() {
    const std::shared_ptr<PullRowsStream> self = shared_from_this();
    const auto done = [this](absl::StatusOr<PullResult> result) { Begin(std::move(result)); };
    if (wait_.Ask(request_, done)) Finish(grpc::Status::CANCELLED);
  }

  void Begin(absl::StatusOr<PullResult> result) {
    const absl::Status has = CheckHasRows(result);
    if (!has.ok()) {
      Finish(ToGrpcStatus(has));
      return;
    }
    const PullLimits::Parameters held = {result->snapshot->step, ""};
    const PullPermit::Turn turn = wait_.permit()->Hold(held, [this] { Ask(); });
    if (turn == PullPermit::Turn::kLater) return;
    if (turn == PullPermit::Turn::kEnded) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    rows_ = result->snapshot->rows;
    WriteHeader(*result);
  }

  absl::Status CheckHasRows(const absl::StatusOr<PullResult>& result) const {
    if (!result.ok()) return result.status();
    if (result->snapshot != nullptr && result->snapshot->rows != nullptr) {
      return wanted_.CheckHeldBy(*result->snapshot->rows);
    }
    return MakeError(Reason::kBadArgument, "the server holds no rows; pull the parameters only");
  }

  void WriteHeader(const PullResult& result) {
    step_ = result.snapshot->step;
    span_.Begin(store_, "pull rows", request_.session, step_);
    sending_.emplace(store_.active_pulls(), request_.session);
    v1::PullParamsResponse header;
    *header.mutable_header() = ToProto(result.header);
    message_ = EncodeMessage(header);
    WriteNext();
  }

  // gRPC's threads make a single chunk themselves if it takes no encoding.
  void MakeNext() {
    if (encoding_.plain() && wanted_.size() <= kPartElements) return MakeChunk();
    store_.executors().encodings->Run([this] { MakeChunk(); });
  }

  void MakeChunk() {
    const uint64_t offset = wanted_.offset();
    std::vector<float> values = wanted_.Next(*rows_);
    const uint64_t tensor_bytes = values.size() * sizeof(float);
    ValueTransform transform = ValueTransform::kFloat32;
    if (encoding_.plain()) {
      message_ = EncodeChunk(offset, Share(std::move(values)), checksums_);
    } else {
      const EncodedChunk encoded = Encode(offset, values);
      transform = encoded.how.transform;
      message_ = EncodeChunk(encoded);
    }
    store_.wire_bytes().AddChunkSent(transform, {tensor_bytes, message_.Length()});
    WriteNext();
  }

  EncodedChunk Encode(uint64_t offset, absl::Span<const float> values) const {
    ChunkContext context;
    context.seed = step_.value() ^ offset << 32;
    return EncodeValues(offset, values, encoding_, context, transforms_);
  }

  // The write's completion may run on another thread at once, so nothing may follow the write. The
  // last write also finishes the call.
  void WriteNext() {
    store_.wire_bytes().AddSent(message_.Length());
    if (!wanted_.done()) {
      StartWrite(&message_);
    } else {
      span_.End();
      wait_.permit()->StopCounting();
      rows_.reset();  // the last message is a copy, and its reader may be slow
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    }
  }

  const std::shared_ptr<CallCanceller> call_;
  const TransformRegistry& transforms_;
  ParameterStore& store_;
  const Checksums checksums_;  // of chunks without encoding
  PullRequest request_;
  Encoding encoding_;
  WantedRows wanted_;
  PullWait wait_;
  std::shared_ptr<const RowSnapshot> rows_;      // from the header to the last chunk, else null
  Step step_;                                    // of rows_
  CallSpan span_;                                // while it is written
  absl::optional<ActivePulls::Stream> sending_;  // from then until gRPC has sent it
  grpc::ByteBuffer message_;                     // that is being written
  std::shared_ptr<PullRowsStream> self_;         // until the call is done
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullRows(grpc::CallbackServerContext& context,
                                                          const grpc::ByteBuffer& request,
                                                          PullLimits& limits,
                                                          const TransformRegistry& transforms,
                                                          ParameterStore& store) {
  const auto stream = std::make_shared<PullRowsStream>(context, limits, transforms, store);
  stream->Start(request);
  return stream.get();
}

}  // namespace sluice

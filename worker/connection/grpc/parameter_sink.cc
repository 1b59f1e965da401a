#include "worker/connection/grpc/parameter_sink.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/chunk.h"
#include "worker/connection/call_retry.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr char kDecodeRow[] = "pull";  // of the trace

// Copies received elements to the vector, from element `offset` of the stripe on.
void Scatter(FloatPiece from, uint64_t offset, bool streams, const StripeSpan<float>& parameters) {
  parameters.ForEachPiece(offset, offset + from.size(), [&](absl::Span<float> to) {
    streams ? StreamTo(from.first(to.size()), to) : CopyTo(from.first(to.size()), to);
    from.remove_prefix(to.size());
  });
}

// Decodes elements where they belong if that is one piece of memory, else elsewhere first.
absl::Status Decode(const EncodedChunk& chunk, const TransformRegistry& transforms, bool streams,
                    const StripeSpan<float>& parameters) {
  const auto to = parameters.OnePiece(chunk.offset, chunk.offset + chunk.how.count);
  if (to.has_value()) {
    return DecodeValues(chunk, *to, transforms, streams ? Writes::kPastCaches : Writes::kToCaches);
  }
  FloatBuffer decoded(chunk.how.count);
  const absl::Status sound = DecodeValues(chunk, decoded.span(), transforms, Writes::kToCaches);
  if (sound.ok()) Scatter(AsPiece(decoded.span()), chunk.offset, streams, parameters);
  return sound;
}

absl::Status Write(const TensorChunk& chunk, const TransformRegistry& transforms, bool streams,
                   const StripeSpan<float>& parameters) {
  absl::Status written;
  if (chunk.encoded.has_value()) {
    written = Decode(*chunk.encoded, transforms, streams, parameters);
  }
  uint64_t offset = chunk.offset;
  for (const FloatPiece& piece : chunk.pieces) {
    Scatter(piece, offset, streams, parameters);
    offset += piece.size();
  }
  EndStreams();
  return written;
}

}  // namespace

absl::Status GrpcParameterSink::Take(const grpc::ByteBuffer& message) {
  const TraceSpan decode(trace_, kDecodeRow, "decode");
  const auto chunk = DecodeChunk<v1::PullParamsResponse>(message);
  if (!chunk.ok()) {
    const bool no_chunk = ReasonOf(chunk.status()) == Reason::kBadArgument;
    return no_chunk ? UnexpectedMessage(call_, "chunk") : chunk.status();
  }
  {
    absl::MutexLock lock(&mu_);
    const absl::Status added = coverage_.Add(chunk->offset, chunk->size());
    if (!added.ok()) return added;
  }
  const absl::Status written = Write(*chunk, transforms_, size_ >= kStreamedElements, parameters_);
  if (!written.ok()) return written;
  absl::MutexLock lock(&mu_);
  written_ += chunk->size();
  bytes_ += message.Length();
  return absl::OkStatus();
}

void GrpcParameterSink::BeginLane() {
  absl::MutexLock lock(&mu_);
  ++lanes_;
  had_lanes_ = true;
}

void GrpcParameterSink::EndLane(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  --lanes_;
  if (lane_error_.ok() || IsCorrupt(status)) lane_error_ = status;
}

absl::Status GrpcParameterSink::AwaitComplete() {
  const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return written_ == size_ || lanes_ == 0 || cancelled_;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&settled));
  if (written_ == size_) return absl::OkStatus();
  if (cancelled_) return absl::CancelledError("the pull was cancelled");
  const absl::Status incomplete = coverage_.CheckComplete();
  if (!had_lanes_) return incomplete;
  if (IsCorrupt(lane_error_)) return lane_error_;
  return absl::UnavailableError(
      absl::StrCat("a part of the parameters was lost: ",
                   lane_error_.ok() ? incomplete.message() : lane_error_.message()));
}

void GrpcParameterSink::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
}

bool GrpcParameterSink::wrote() const {
  absl::MutexLock lock(&mu_);
  return coverage_.covered() > 0;
}

uint64_t GrpcParameterSink::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

}  // namespace sluice

#include "worker/connection/grpc/parameter_sink.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/tensor/vector_copy.h"
#include "common/wire/chunk.h"
#include "worker/connection/call_retry.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr char kDecodeRow[] = "pull";  // of the trace

absl::Status Write(const TensorChunk& chunk, const TransformRegistry& transforms,
                   absl::Span<float> parameters) {
  const bool streams = parameters.size() >= kStreamedElements;
  if (chunk.encoded.has_value()) {
    return DecodeValues(*chunk.encoded, parameters.subspan(chunk.offset, chunk.size()), transforms,
                        streams ? Writes::kPastCaches : Writes::kToCaches);
  }
  uint64_t offset = chunk.offset;
  for (const FloatPiece& piece : chunk.pieces) {
    const absl::Span<float> to = parameters.subspan(offset, piece.size());
    streams ? StreamTo(piece, to) : CopyTo(piece, to);
    offset += piece.size();
  }
  EndStreams();
  return absl::OkStatus();
}

}  // namespace

absl::Status GrpcParameterSink::Take(const grpc::ByteBuffer& message) {
  const TraceSpan decode(trace_, kDecodeRow, "decode");
  const auto chunk = DecodeChunk<v1::PullParamsResponse>(message);
  if (!chunk.ok()) {
    const bool no_chunk = ReasonOf(chunk.status()) == Reason::kBadArgument;
    return no_chunk ? UnexpectedMessage("PullParams", "chunk") : chunk.status();
  }
  {
    absl::MutexLock lock(&mu_);
    const absl::Status added = coverage_.Add(chunk->offset, chunk->size());
    if (!added.ok()) return added;
  }
  const absl::Status written = Write(*chunk, transforms_, parameters_);
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
    return written_ == parameters_.size() || lanes_ == 0;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&settled));
  if (written_ == parameters_.size()) return absl::OkStatus();
  const absl::Status incomplete = coverage_.CheckComplete();
  if (!had_lanes_) return incomplete;
  if (IsCorrupt(lane_error_)) return lane_error_;
  return absl::UnavailableError(
      absl::StrCat("a part of the parameters was lost: ",
                   lane_error_.ok() ? incomplete.message() : lane_error_.message()));
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

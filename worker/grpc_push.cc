#include "worker/grpc_push.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "common/wire.h"
#include "common/wire_chunk.h"
#include "worker/grpc_answer.h"
#include "worker/grpc_stream.h"

namespace sluice {
namespace {

constexpr char kMethod[] = "/sluice.v1.ParameterServer/PushGradients";
constexpr char kRow[] = "push";  // of the trace
// For a push that waits for its batch to be computed. If that takes longer, it is repeated.
constexpr absl::Duration kLongestBatch = absl::Hours(1);

class GrpcPush final : public OutgoingPush {
 public:
  GrpcPush(grpc::GenericStub& stub, const PushHeader& header, uint64_t elements, BatchIs batch,
           const GrpcPushOptions& options)
      : batch_(batch),
        memory_(options.memory),
        checksums_(options.checksums),
        unsent_(elements),
        stream_(stub, kMethod, Timeout(elements, batch), options.token) {
    span_.emplace(options.trace, kRow, "push", header.step);
    v1::PushGradientsRequest message;
    *message.mutable_header() = ToProto(header);
    open_ = stream_.Write(EncodeMessage(message), Follows::kMoreAtOnce);
  }

  bool Send(uint64_t offset, const SharedFloats& part) override {
    if (!open_) return false;
    const uint64_t size = part.values.size();
    const auto first = memory_ == nullptr ? absl::nullopt : memory_->IndexOf(part.values);
    if (first.has_value()) return Write(EncodeSharedChunk(offset, *first, size), size);
    ForEachChunk(offset, part, checksums_, [this](const grpc::ByteBuffer& chunk, uint64_t count) {
      return Write(chunk, count);
    });
    return open_;
  }

  bool Send(const EncodedChunk& chunk) override {
    return open_ && Write(EncodeChunk(chunk), chunk.how.count);
  }

  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    if (open_ && batch_ == BatchIs::kInSummary) {
      v1::PushGradientsRequest message;
      *message.mutable_summary() = ToProto(summary);
      stream_.Write(EncodeMessage(message), Follows::kNothing);
    }
    const auto answer = ReadAnswer<v1::PushGradientsResponse>("PushGradients", stream_);
    span_.reset();
    if (batch_ == BatchIs::kInHeader && memory_ == nullptr) {
      transfer_ = {sent_bytes_, absl::Now() - first_sent_};
    }
    if (!answer.ok()) return answer.status();
    return FromProto(*answer);
  }

  Transfer transfer() const override { return transfer_; }

 private:
  bool Write(const grpc::ByteBuffer& chunk, uint64_t elements) {
    if (sent_bytes_ == 0) first_sent_ = absl::Now();
    sent_bytes_ += chunk.Length();
    unsent_ -= elements;
    const bool last = batch_ == BatchIs::kInHeader && unsent_ == 0;
    open_ = stream_.Write(chunk, last ? Follows::kNothing : Follows::kMore);
    return open_;
  }

  static absl::Duration Timeout(uint64_t elements, BatchIs batch) {
    const absl::Duration transfer = TransferTimeout(elements);
    return batch == BatchIs::kInHeader ? transfer : transfer + kLongestBatch;
  }

  const BatchIs batch_;
  const std::shared_ptr<const SharedMemory> memory_;
  const Checksums checksums_;
  uint64_t unsent_;
  bool open_ = false;
  absl::Time first_sent_;
  uint64_t sent_bytes_ = 0;
  Transfer transfer_;
  absl::optional<TraceSpan> span_;
  GrpcStream stream_;
};

}  // namespace

std::unique_ptr<OutgoingPush> StartGrpcPush(grpc::GenericStub& stub, const PushHeader& header,
                                            uint64_t elements, BatchIs batch,
                                            const GrpcPushOptions& options) {
  return std::make_unique<GrpcPush>(stub, header, elements, batch, options);
}

}  // namespace sluice

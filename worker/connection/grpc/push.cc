#include "worker/connection/grpc/push.h"

#include <glog/logging.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/tensor/table_spec.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/push_lane.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {
namespace {

constexpr char kPushGradients[] = "/sluice.v1.ParameterServer/PushGradients";
constexpr char kRow[] = "push";  // of the trace
// For a push that waits while its batch is computed. If that takes longer, the push is repeated.
constexpr absl::Duration kLongestBatch = absl::Hours(1);

class GrpcPush final : public OutgoingPush {
 public:
  GrpcPush(grpc::GenericStub& stub, const PushHeader& header, uint64_t elements, BatchIs batch,
           const RowGradients& rows, const GrpcPushOptions& options)
      : batch_(batch),
        memory_(options.memory),
        checksums_(options.checksums),
        transforms_(options.transforms),
        sequence_(header.sequence),
        chooser_(options.chooser),
        unsent_(elements + ElementsOf(rows)),
        stream_(stub, kPushGradients, Timeout(unsent_, batch), options.metadata) {
    span_.emplace(options.trace, kRow, "push", header.step);
    v1::PushGradientsRequest message;
    *message.mutable_header() = ToProto(header);
    if (!options.lanes.lanes.empty()) {
      message.mutable_header()->set_call_number(options.lanes.name.call_number());
    }
    // The server's lanes wait for this header, so it is sent at once.
    const Follows follows = options.lanes.lanes.empty() ? Follows::kMoreAtOnce : Follows::kMore;
    open_ = stream_.Write(EncodeMessage(message), Complete() ? Follows::kNothing : follows);
    for (const std::shared_ptr<GrpcLane>& lane : options.lanes.lanes) {
      lanes_.push_back(std::make_unique<GrpcPushLane>(lane, options.lanes.name,
                                                      Timeout(unsent_, batch), options.metadata));
    }
    SendRows(elements, rows);
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

  bool IsRead(absl::Span<const float> part) const override {
    return memory_ != nullptr && memory_->IndexOf(part).has_value();
  }

  bool SendEncoded(const EncodedChunk& chunk, uint64_t taken) override {
    return open_ && Write(EncodeChunk(chunk), taken);
  }

  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    const absl::Status lanes = FinishLanes();
    if (open_ && batch_ == BatchIs::kInSummary) {
      v1::PushGradientsRequest message;
      *message.mutable_summary() = ToProto(summary);
      stream_.Write(EncodeMessage(message), Follows::kNothing);
    } else if (open_ && !lanes_.empty()) {
      stream_.EndWrites();
    }
    const auto answer = ReadAnswer<v1::PushGradientsResponse>("PushGradients", stream_);
    span_.reset();
    if (batch_ == BatchIs::kInHeader && memory_ == nullptr) {
      transfer_ = {sent_bytes_, RealClock().Now() - first_sent_};
    }
    if (!answer.ok()) return IfLost(answer.status(), lanes);
    // A gradient that does not count may not have been sent whole.
    if (chooser_ != nullptr && unsent_ == 0 && chooser_->NoteTransfer(Connections(), transfer_)) {
      LOG(INFO) << absl::StrFormat(
          "gradients go through %d of at most %d connections, at %.0f MB/s; through one, at %.0f",
          chooser_->count(), chooser_->most(), chooser_->rate() / 1e6,
          chooser_->rate_of_one() / 1e6);
    }
    return FromProto(*answer);
  }

  void Cancel() override {
    stream_.Cancel();
    for (const auto& lane : lanes_) lane->Cancel();
  }

  bool has_lanes() const override { return !lanes_.empty(); }

  Transfer transfer() const override { return transfer_; }

 private:
  // First all ids. A row's elements follow those of the vector.
  void SendRows(uint64_t elements, const RowGradients& rows) {
    for (const RowGradient& gradient : rows) SendIds(gradient.rows);
    uint64_t offset = elements;
    for (const RowGradient& gradient : rows) {
      if (gradient.encoding.plain()) {
        ForEachChunk(offset, gradient.values, checksums_,
                     [this](const grpc::ByteBuffer& chunk, uint64_t count) {
                       return WriteOfRows(chunk, count);
                     });
      } else {
        SendEncodedRows(offset, gradient);
      }
      offset += gradient.values.values.size();
    }
  }

  void SendEncodedRows(uint64_t offset, const RowGradient& gradient) {
    const absl::Span<const float> values = gradient.values.values;
    for (uint64_t begin = 0; open_ && begin < values.size(); begin += kMostEncoded) {
      const auto part = values.subspan(begin, kMostEncoded);
      ChunkContext context;
      context.seed = MixId(sequence_.value() ^ MixId(offset + begin));
      const EncodedChunk chunk =
          EncodeValues(offset + begin, part, gradient.encoding, context, *transforms_);
      WriteOfRows(EncodeChunk(chunk), part.size());
    }
  }

  // Not through lanes: they would bring rows before their ids.
  bool WriteOfRows(const grpc::ByteBuffer& chunk, uint64_t elements) {
    if (!open_) return false;
    Count(chunk, elements);
    return WriteHere(chunk);
  }

  void SendIds(const RowIds& rows) {
    constexpr size_t kMostIds = kMaxIdBytes / sizeof(RowId);
    const absl::Span<const RowId> ids = rows.ids;
    for (size_t begin = 0; open_ && begin < ids.size(); begin += kMostIds) {
      const auto part = ids.subspan(begin, kMostIds);
      v1::PushGradientsRequest message;
      *message.mutable_rows() = ToProto(RowIds{rows.table, {part.begin(), part.end()}});
      open_ = stream_.Write(EncodeMessage(message), Follows::kMore);
    }
  }

  // Whether nothing follows in the push's own call. A stripe may have no elements at all.
  bool Complete() const { return lanes_.empty() && batch_ == BatchIs::kInHeader && unsent_ == 0; }

  bool Write(const grpc::ByteBuffer& chunk, uint64_t elements) {
    Count(chunk, elements);
    for (const auto& lane : lanes_) {
      if (lane->Offer(chunk)) return true;
    }
    return WriteHere(chunk);
  }

  void Count(const grpc::ByteBuffer& chunk, uint64_t elements) {
    if (sent_bytes_ == 0) first_sent_ = RealClock().Now();
    sent_bytes_ += chunk.Length();
    unsent_ -= elements;
  }

  bool WriteHere(const grpc::ByteBuffer& chunk) {
    open_ = stream_.Write(chunk, Complete() ? Follows::kNothing : Follows::kMore);
    return open_;
  }

  // All chunks must have arrived before the call itself ends. Returns the first error of a lane.
  absl::Status FinishLanes() {
    absl::Status first;
    if (!open_) return first;
    for (const auto& lane : lanes_) lane->End();
    for (const auto& lane : lanes_) first.Update(lane->Await());
    return first;
  }

  // If a lane has lost elements, the gradient is not at fault, and the push may be repeated.
  absl::Status IfLost(const absl::Status& answer, const absl::Status& lanes) const {
    if (lanes_.empty() || ReasonOf(answer) != Reason::kBadChunk) return answer;
    return absl::UnavailableError(absl::StrCat("a part of the push was lost: ",
                                               lanes.ok() ? answer.message() : lanes.message()));
  }

  int Connections() const { return 1 + static_cast<int>(lanes_.size()); }

  static absl::Duration Timeout(uint64_t elements, BatchIs batch) {
    const absl::Duration transfer = TransferTimeout(elements);
    return batch == BatchIs::kInHeader ? transfer : transfer + kLongestBatch;
  }

  const BatchIs batch_;
  const std::shared_ptr<const SharedMemory> memory_;
  const Checksums checksums_;
  const std::shared_ptr<const TransformRegistry> transforms_;
  const Sequence sequence_;
  ConnectionChooser* const chooser_;
  uint64_t unsent_;
  bool open_ = false;
  absl::Time first_sent_;
  uint64_t sent_bytes_ = 0;
  Transfer transfer_;
  absl::optional<TraceSpan> span_;
  GrpcStream stream_;
  std::vector<std::unique_ptr<GrpcPushLane>> lanes_;
};

}  // namespace

std::unique_ptr<OutgoingPush> StartGrpcPush(grpc::GenericStub& stub, const PushHeader& header,
                                            uint64_t elements, BatchIs batch,
                                            const RowGradients& rows,
                                            const GrpcPushOptions& options) {
  return std::make_unique<GrpcPush>(stub, header, elements, batch, rows, options);
}

}  // namespace sluice

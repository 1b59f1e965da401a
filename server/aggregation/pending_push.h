// A push whose payload arrives at a server, and the values that a ParameterStore returns when a
// push or an offer of initial parameters begins.

#ifndef SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_
#define SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/staged_rows.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

using PushId = Number<struct PushTag>;  // from 1; 0 is no push

// The number of bytes of a push that have arrived. Any thread may read it.
using ArrivedBytes = std::shared_ptr<const std::atomic<uint64_t>>;

// A push whose header was admitted. The ParameterStore hands it to the caller of BeginPush(), which
// adds the chunks and gives it back with FinishPush(), RefusePush() or AbandonPush(). Externally
// synchronized, except that any thread may read the number in arrived().
class PendingPush {
 public:
  // Counts the bytes that arrive in `arrived`, which is not null. `memory`: see StagedVector.
  PendingPush(PushId id, const PushHeader& header, std::shared_ptr<const Layout> layout,
              std::shared_ptr<std::atomic<uint64_t>> arrived,
              std::shared_ptr<FloatBuffer> memory = nullptr)
      : id_(id),
        header_(header),
        layout_(layout),
        gradient_(layout, std::move(memory)),
        rows_(std::move(layout), header.row_bytes),
        arrived_(std::move(arrived)) {}

  // Takes a chunk of the vector or, from the vector's end on, of the rows. Returns the errors of
  // StageChunk(), Reserve() and StagedRows, and BAD_ARGUMENT after the summary.
  absl::Status Add(TensorChunk chunk, Parallel* parallel = nullptr,
                   const TransformRegistry* transforms = nullptr) {
    return StageChunk(
        std::move(chunk), [this](uint64_t offset) { return ElementName(offset); },
        Staging{transforms, parallel, FloatsOf(gradient_.memory())},
        [this](const TensorChunk& arrived) { return Reserve(arrived); },
        [this](absl::StatusOr<TensorChunk> checked) {
          if (!checked.ok()) return checked.status();
          Place(*std::move(checked));
          return absl::OkStatus();
        });
  }

  // The two halves of Add(), as in StagedVector.
  absl::Status Reserve(const TensorChunk& chunk) {
    if (summarized_) return AfterSummary();
    return IsOfRows(chunk) ? rows_.Reserve(InRows(chunk)) : gradient_.Reserve(chunk);
  }
  void Place(TensorChunk chunk) {
    IsOfRows(chunk) ? rows_.Place(InRows(std::move(chunk))) : gradient_.Place(std::move(chunk));
    arrived_->store(bytes(), std::memory_order_relaxed);
  }

  // Takes ids of rows; see StagedRows.
  absl::Status AddIds(RowIds ids) {
    return summarized_ ? AfterSummary() : rows_.AddIds(std::move(ids));
  }

  // Names an element of a chunk that was reserved, for an error.
  std::string ElementName(uint64_t offset) const {
    return offset < layout_->size() ? layout_->ElementName(offset)
                                    : rows_.ElementName(offset - layout_->size());
  }

  // Replaces the number of samples, the loss, the running means and the options of the header.
  // BAD_ARGUMENT if it was called before.
  absl::Status Summarize(const PushSummary& summary) {
    if (summarized_) return AfterSummary();
    summarized_ = true;
    header_.samples = summary.samples;
    header_.loss = summary.loss;
    header_.running_means = summary.running_means;
    header_.options = summary.options;
    header_.clip_norm = summary.clip_norm;
    return absl::OkStatus();
  }

  // Ends the arrival. Call it before the gradient is read.
  void Seal() {
    gradient_.Seal();
    rows_.Seal();
  }

  // OK if all has arrived, else BAD_CHUNK or BAD_ARGUMENT.
  absl::Status CheckComplete() const {
    const absl::Status vector = gradient_.CheckComplete();
    return vector.ok() ? rows_.CheckComplete() : vector;
  }

  // The norm of what the optimizer applies: of the vector's PARAMETER elements, and of the rows.
  double ParameterNorm() const {
    const StagedVector* const rows = rows_.values();
    return std::hypot(gradient_.ParameterNorm(), rows == nullptr ? 0 : rows->ParameterNorm());
  }

  PushId id() const { return id_; }
  const PushHeader& header() const { return header_; }
  const StagedVector& gradient() const { return gradient_; }
  const StagedRows& rows() const { return rows_; }
  uint64_t bytes() const { return gradient_.bytes() + rows_.bytes(); }  // that have arrived
  const std::shared_ptr<const Layout>& layout() const { return layout_; }
  ArrivedBytes arrived() const { return arrived_; }

 private:
  static absl::Status AfterSummary() {
    return MakeError(Reason::kBadArgument, "nothing may follow the summary of a push");
  }

  bool IsOfRows(const TensorChunk& chunk) const {
    return chunk.offset >= layout_->size() && !layout_->tables().empty();
  }
  TensorChunk InRows(TensorChunk chunk) const {
    chunk.offset -= layout_->size();
    return chunk;
  }

  const PushId id_;
  PushHeader header_;
  bool summarized_ = false;
  const std::shared_ptr<const Layout> layout_;
  StagedVector gradient_;
  StagedRows rows_;
  const std::shared_ptr<std::atomic<uint64_t>> arrived_;
};

// The two ways in which a push ends that does not count: refused, or broken off.
enum class Abandoned { kRejected, kAborted };

// The result of ParameterStore::BeginPush().
struct PushStart {
  std::unique_ptr<PendingPush> push;  // admitted; null if the push is answered without its payload
  PushOutcome answer;                 // only if `push` is null
};

// Each is called exactly once, outside all locks, from any thread; a PushStartCallback is never
// called if the push was cancelled while it waited (CancelPush()).
using PushStartCallback = std::function<void(absl::StatusOr<PushStart>)>;
using PushCallback = std::function<void(absl::StatusOr<PushOutcome>)>;

// The result of ParameterStore::BeginInitialize().
struct InitializeStart {
  std::unique_ptr<PendingPush> parameters;  // to be filled; null if there are parameters already
  InitializeOutcome answer;                 // only if `parameters` is null
};

// Each is called exactly once, as a PushStartCallback is.
using InitializeStartCallback = std::function<void(absl::StatusOr<InitializeStart>)>;
using InitializeCallback = std::function<void(const absl::StatusOr<InitializeOutcome>&)>;

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_

// A push that is arriving at a shard, and the values that a shard returns when a push or an offer
// of initial parameters begins.

#ifndef SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_
#define SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

using PushId = Number<struct PushTag>;  // from 1; 0 is no push

// The number of bytes of a push that have arrived. Any thread may read it.
using ArrivedBytes = std::shared_ptr<const std::atomic<uint64_t>>;

// A push whose header was admitted. The shard hands it to the caller of BeginPush(), which adds the
// chunks and gives it back with FinishPush(), RefusePush() or AbandonPush(). Externally
// synchronized, except that any thread may read the number in arrived().
class PendingPush {
 public:
  // Counts the bytes that arrive in `arrived`, which is not null.
  PendingPush(PushId id, const PushHeader& header, std::shared_ptr<const Layout> layout,
              std::shared_ptr<std::atomic<uint64_t>> arrived)
      : id_(id),
        header_(header),
        layout_(layout),
        gradient_(std::move(layout)),
        arrived_(std::move(arrived)) {}

  // Takes a chunk. Returns the errors of StagedVector::Add(), and BAD_ARGUMENT after the summary.
  absl::Status Add(TensorChunk chunk, Parallel* parallel = nullptr,
                   const TransformRegistry* transforms = nullptr) {
    if (summarized_) return AfterSummary();
    const absl::Status added = gradient_.Add(std::move(chunk), parallel, transforms);
    arrived_->store(gradient_.bytes(), std::memory_order_relaxed);
    return added;
  }

  // The two halves of Add(), as in StagedVector.
  absl::Status Reserve(const TensorChunk& chunk) {
    return summarized_ ? AfterSummary() : gradient_.Reserve(chunk);
  }
  void Place(TensorChunk chunk) {
    gradient_.Place(std::move(chunk));
    arrived_->store(gradient_.bytes(), std::memory_order_relaxed);
  }

  // Replaces the number of samples and the loss of the header. BAD_ARGUMENT if it was called
  // before.
  absl::Status Summarize(const PushSummary& summary) {
    if (summarized_) return AfterSummary();
    summarized_ = true;
    header_.samples = summary.samples;
    header_.loss = summary.loss;
    return absl::OkStatus();
  }

  // Ends the arrival. Call it before the gradient is read.
  void Seal() { gradient_.Seal(); }

  PushId id() const { return id_; }
  const PushHeader& header() const { return header_; }
  const StagedVector& gradient() const { return gradient_; }
  const std::shared_ptr<const Layout>& layout() const { return layout_; }
  ArrivedBytes arrived() const { return arrived_; }

 private:
  static absl::Status AfterSummary() {
    return MakeError(Reason::kBadArgument, "nothing may follow the summary of a push");
  }

  const PushId id_;
  PushHeader header_;
  bool summarized_ = false;
  const std::shared_ptr<const Layout> layout_;
  StagedVector gradient_;
  const std::shared_ptr<std::atomic<uint64_t>> arrived_;
};

// The result of Shard::BeginPush().
struct PushStart {
  std::unique_ptr<PendingPush> push;  // admitted; null if the push is answered without its payload
  PushOutcome answer;                 // only if `push` is null
};

// Each is called exactly once, outside all locks, from any thread; a PushStartCallback is never
// called if the push was cancelled while it waited (Shard::CancelPush()).
using PushStartCallback = std::function<void(absl::StatusOr<PushStart>)>;
using PushCallback = std::function<void(absl::StatusOr<PushOutcome>)>;

// The result of Shard::BeginInitialize().
struct InitializeStart {
  std::unique_ptr<PendingPush> parameters;  // to be filled; null if the shard has parameters
  InitializeOutcome answer;                 // only if `parameters` is null
};

// Each is called exactly once, as a PushStartCallback is.
using InitializeStartCallback = std::function<void(absl::StatusOr<InitializeStart>)>;
using InitializeCallback = std::function<void(const absl::StatusOr<InitializeOutcome>&)>;

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_

// What arrives at a shard in pieces: pushes, and the offer of initial parameters.

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
#include "common/protocol/protocol_types.h"
#include "server/aggregation/staged_vector.h"

namespace sluice {

// How many bytes of a push have arrived; to be read by any thread.
using ArrivedBytes = std::shared_ptr<const std::atomic<uint64_t>>;

// A push that was let in at its header and is arriving. Owned by whoever feeds it, on one thread at
// a time.
class PendingPush {
 public:
  PendingPush(const PushHeader& header, std::shared_ptr<const Layout> layout)
      : header_(header), layout_(layout), gradient_(std::move(layout)) {}

  // Takes a chunk; errors are StagedVector::Add's, and BAD_ARGUMENT after the summary.
  absl::Status Add(TensorChunk chunk, Parallel* parallel = nullptr) {
    if (summarized_) return AfterSummary();
    const absl::Status added = gradient_.Add(std::move(chunk), parallel);
    arrived_->store(gradient_.bytes(), std::memory_order_relaxed);
    return added;
  }

  // The same in steps, as StagedVector's.
  absl::Status Reserve(const TensorChunk& chunk) {
    return summarized_ ? AfterSummary() : gradient_.Reserve(chunk);
  }
  void Place(TensorChunk chunk) {
    gradient_.Place(std::move(chunk));
    arrived_->store(gradient_.bytes(), std::memory_order_relaxed);
  }

  // What counts in place of what the header said. BAD_ARGUMENT if that was told already.
  absl::Status Summarize(const PushSummary& summary) {
    if (summarized_) return AfterSummary();
    summarized_ = true;
    header_.samples = summary.samples;
    header_.loss = summary.loss;
    return absl::OkStatus();
  }

  // Nothing more comes.
  void Seal() { gradient_.Seal(); }

  const PushHeader& header() const { return header_; }
  const StagedVector& gradient() const { return gradient_; }
  const std::shared_ptr<const Layout>& layout() const { return layout_; }
  ArrivedBytes arrived() const { return arrived_; }

 private:
  static absl::Status AfterSummary() {
    return MakeError(Reason::kBadArgument, "nothing may follow the summary of a push");
  }

  PushHeader header_;
  bool summarized_ = false;
  const std::shared_ptr<const Layout> layout_;
  StagedVector gradient_;
  const std::shared_ptr<std::atomic<uint64_t>> arrived_ =
      std::make_shared<std::atomic<uint64_t>>(0);
};

// What Shard::BeginPush says: `push` to go on with, or, if that is null, the answer already.
struct PushStart {
  std::unique_ptr<PendingPush> push;
  PushOutcome answer;
};

// Called exactly once, outside all locks, from any thread.
using PushStartCallback = std::function<void(absl::StatusOr<PushStart>)>;
using PushCallback = std::function<void(absl::StatusOr<PushOutcome>)>;

// What Shard::BeginInitialize says: where to stage the parameters, or, if null, the answer already.
struct InitializeStart {
  std::unique_ptr<StagedVector> parameters;
  InitializeOutcome answer;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_PENDING_PUSH_H_

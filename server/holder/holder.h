// One server's stripe of all that is as large as the model: the gradients that have arrived, their
// sum, the optimizer's slots, and the published snapshots; and its part of the tables. It decides
// nothing: the owner tells it what to do, as the coordinator and the StepDirector have decided. One
// server holds the whole vector, which is a single stripe, and all rows.
//
// The owner has a mutex, and calls the holder with it. No method takes a time that grows with the
// model, unless its comment says so. What does is done without the mutex, by the one thread that
// makes steps: with executor(), from and to the vectors of BeginStep().

#ifndef SLUICE_SERVER_HOLDER_HOLDER_H_
#define SLUICE_SERVER_HOLDER_HOLDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/pending_push.h"
#include "server/aggregation/staged_vector.h"
#include "server/holder/model_executor.h"
#include "server/holder/pull_result.h"
#include "server/snapshots/snapshot_store.h"
#include "server/state/table_memory.h"

namespace sluice {

// Externally synchronized, but for executor().
class Holder {
 public:
  // `parallel` outlives it.
  Holder(SnapshotMemory memory, Parallel& parallel, TableMemory table_memory = {})
      : memory_(memory), parallel_(parallel), table_memory_(std::move(table_memory)) {}

  // Makes room for that stripe of the model, which is known now. Before all other methods, except
  // latest(). `layout` is that of the whole vector; `optimizer` is valid and fits it.
  void Open(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer,
            const Stripes& stripes, uint32_t stripe);

  // Null before Open(). Only the thread that makes steps uses it.
  ModelExecutor* executor() { return executor_.get(); }
  // The tables, for methods that any thread may call without the mutex; null if there are none.
  std::shared_ptr<RowTables> tables() const {
    return executor_ == nullptr ? nullptr : executor_->tables();
  }

  // The stripe's layout; null before Open().
  const std::shared_ptr<const Layout>& layout() const { return layout_; }

  // Keeps a gradient that has arrived, until it is taken to be added, or dropped.
  void Keep(std::unique_ptr<PendingPush> push);
  std::unique_ptr<PendingPush> Take(PushId push);  // one that is kept
  // Null if it is not kept. The caller frees it without the mutex: that takes a time that grows
  // with the model.
  [[nodiscard]] std::unique_ptr<PendingPush> Drop(PushId push);
  // Those of the session that are kept, without `except`. Freed likewise.
  [[nodiscard]] std::vector<std::unique_ptr<PendingPush>> TakeSession(
      SessionId session, absl::Span<const PushId> except);

  // Where an offer of initial parameters arrives.
  std::unique_ptr<StagedVector> MakeOffer() const {
    return std::make_unique<StagedVector>(layout_);
  }
  // A snapshot for the first parameters, to be written and published.
  std::shared_ptr<Snapshot> MakeFirst(Step step);

  // Memory for the gradient of that push, which is expected to be the first of the next step's sum.
  // BeginStep(push) makes it the memory of the next snapshot. If another gradient is the first, it
  // is merely the gradient's own. Shared memory is of another generation from now on. Null if a
  // step has begun, or another push has such memory.
  std::shared_ptr<FloatBuffer> LendNext(PushId push);
  // The snapshots of the step that follows the latest: the same at each call, until Publish().
  // `first`: the push whose gradient is added next; none if no gradient is added.
  SnapshotPair BeginStep(PushId first = PushId());
  // For inconsistent reads: elements [0, written) of the step that is being made are final.
  void Grow(const std::shared_ptr<const Snapshot>& next, uint64_t written) {
    snapshots_->Grow(next, written);
  }
  // Makes it the latest.
  void Publish(std::shared_ptr<const Snapshot> snapshot) {
    step_ = {};
    snapshots_->Publish(std::move(snapshot));
  }

  // The latest snapshot; null before the first.
  std::shared_ptr<const Snapshot> latest() const {
    return snapshots_ == nullptr ? nullptr : snapshots_->latest();
  }
  // See SnapshotStore.
  std::shared_ptr<const Snapshot> newest(uint64_t end) const { return snapshots_->newest(end); }

  // See PullRelease.
  PullResult Release(const PullHeader& header) const {
    return {header, header.not_modified ? nullptr : snapshots_->latest()};
  }

 private:
  const SnapshotMemory memory_;
  Parallel& parallel_;
  const TableMemory table_memory_;
  std::shared_ptr<const Layout> layout_;  // of the stripe
  std::map<PushId, std::unique_ptr<PendingPush>> kept_;
  std::unique_ptr<SnapshotStore> snapshots_;
  SnapshotPair step_;  // empty unless a step has begun
  // What LendNext() returned, and to which push. The push owns it.
  std::weak_ptr<Snapshot> lent_;
  PushId lent_to_;
  std::unique_ptr<ModelExecutor> executor_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_HOLDER_H_

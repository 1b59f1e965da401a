// One server's stripe of all that is as large as the model: the sum of the gradients, the
// optimizer's slots, and the published snapshots; and its part of the tables. It decides
// nothing. The leader's Shard calls the stripe of its own server. On the other servers a Replica
// does, as the leader's log says. So every server makes a step by the same code. A server alone has
// the whole vector, which is a single stripe, and all rows.

#ifndef SLUICE_SERVER_REPLICA_SERVER_STRIPE_H_
#define SLUICE_SERVER_REPLICA_SERVER_STRIPE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/protocol/optimizer_config.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/held_rows.h"
#include "server/replica/model_executor.h"
#include "server/replica/replica_commands.h"
#include "server/snapshots/snapshot_store.h"
#include "server/snapshots/striped_tensor.h"
#include "server/state/step_journal.h"
#include "server/state/stripe_checkpoint.h"
#include "server/state/table_memory.h"

namespace sluice {

// Any thread may call any method, but for those of a step, which one thread at a time calls. Only
// methods whose comment says so take a time that grows with the model.
class ServerStripe {
 public:
  // `parallel` outlives it.
  ServerStripe(SnapshotMemory memory, Parallel& parallel, TableMemory table_memory = {});

  // Makes room for that stripe of the model. Once, before all other methods except SetJournal(),
  // latest(), layout(), tables() and rows(). `layout` is that of the whole vector; `optimizer` is
  // valid and fits it; `program` makes the steps of ProgramOptions, and is null for others.
  void Open(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer,
            StripePlace place, std::unique_ptr<ProgramOptimizer> program = nullptr);

  // ---- Pushes

  // An admitted push, or an offer of parameters, whose payload now arrives. `begins_sum`: it is
  // expected to be the first of the next step's sum. Then it arrives in the memory of the next
  // snapshot, if that is free, and workers that still read that memory notice it (SnapshotMemory).
  // If another gradient is the first after all, that memory is merely the gradient's own.
  std::unique_ptr<PendingPush> Begin(PushId push, const PushHeader& header,
                                     std::shared_ptr<std::atomic<uint64_t>> arrived,
                                     bool begins_sum);
  // Its payload is here, or `fault` is what was wrong with it. Seals it. Returns what is to be
  // reported. Takes a time that grows with the model if it measures the norm.
  HaveReport End(PendingPush& push, const absl::Status& fault, bool measures_norm) const;

  // ---- The first snapshot

  // Copies an offer of parameters; it takes a time that grows with the model.
  std::shared_ptr<Snapshot> MakeFirst(const PendingPush& offer, Step step);
  // Publishes it. The tables begin without rows.
  void Start(std::shared_ptr<Snapshot> first);
  // Begins with the state of a checkpoint of that step. DATA_LOSS if the slots or rows do not fit;
  // SavedRows' errors. Takes a time that grows with the model.
  absl::Status Restore(const StripeCheckpoint& checkpoint, Step step);

  // ---- Steps. One thread at a time calls these. All but Publish() and SetJournal() take a time
  // that grows with the model.

  // Steps are appended to it from now on, by Journal(). It outlives the stripe, or is replaced.
  void SetJournal(StepJournal* journal) { journal_ = journal; }
  // Adds a gradient to the sum of the coming step. `last`: orders follow. Then it is added while
  // the step is made, unless the journal takes the sum, and it stays until EndStep().
  void Add(std::unique_ptr<PendingPush> push, const GradientWeight& weight, bool last);
  // In place of gradients: the sum of a journaled step; see Journal(). Empty: it had none.
  void Load(absl::Span<const float> sum, absl::Span<const TableSums> rows);
  // Carries out an order, also while a step is added up. kMake and kCopy write the next snapshot.
  StripeReport Carry(const StepOrder& order);
  // Of what kMake has made. 0 after kCopy, and if there is no journal, unless Load() began the
  // step.
  uint64_t checksum() const { return checksum_; }
  // Appends the step that was made, with its sum if record.gradients is not 0. Sets the checksum.
  void Journal(StepRecord record);
  // The step that was made becomes the latest snapshot. Returns the one before. The caller drops it
  // with no lock held: the next pushes may need its memory.
  [[nodiscard]] std::shared_ptr<const Snapshot> Publish();
  // Forgets the gradients, before or after Publish().
  void EndStep();

  // What the latest step has, for a checkpoint. While no step is made. The slots are copied.
  StripeCheckpoint Copy();
  // No checkpoint will need the rows that were removed until that step. Any thread.
  void ForgetRemovals(Step until) { model_->ForgetRemovals(until); }

  // ---- Readers

  // The latest snapshot; null before the first.
  std::shared_ptr<const Snapshot> latest() const;
  // See SnapshotStore.
  std::shared_ptr<const Snapshot> newest(uint64_t end) const;
  // The stripe's part of a tensor of that snapshot. It takes as long as one pass over it.
  TensorPart Read(const TensorQuery& query, const Snapshot& snapshot) const;
  // Null if there are none, and before Open().
  std::shared_ptr<RowTables> tables() const;
  HeldRows rows() const;
  // The stripe's layout; null before Open().
  std::shared_ptr<const Layout> layout() const;

 private:
  std::shared_ptr<FloatBuffer> LendNext(PushId push) ABSL_LOCKS_EXCLUDED(mu_);
  SnapshotPair BeginStep(PushId first = PushId()) ABSL_LOCKS_EXCLUDED(mu_);

  const SnapshotMemory memory_;
  Parallel& parallel_;
  const TableMemory table_memory_;
  mutable absl::Mutex mu_;
  StripePlace place_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const Layout> whole_ ABSL_GUARDED_BY(mu_);   // of the vector
  std::shared_ptr<const Layout> layout_ ABSL_GUARDED_BY(mu_);  // of the stripe
  std::unique_ptr<SnapshotStore> snapshots_ ABSL_GUARDED_BY(mu_);
  SnapshotPair step_ ABSL_GUARDED_BY(mu_);  // empty unless a step has begun
  // What LendNext() returned, and to which push. The push owns it.
  std::weak_ptr<Snapshot> lent_ ABSL_GUARDED_BY(mu_);
  PushId lent_to_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ModelExecutor> model_;  // set by Open(), with the mutex, and never changed
  // Only the thread that makes steps uses these.
  StepJournal* journal_ = nullptr;
  std::unique_ptr<PendingPush> last_;  // the step's last gradient
  bool loaded_ = false;                // Load() has begun the step
  uint64_t checksum_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_SERVER_STRIPE_H_

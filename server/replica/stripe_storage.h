// Where a replica keeps its stripe's part of checkpoints, and its journal: a directory of its
// server (server/durable/stripe_directory.h), or a map in tests.

#ifndef SLUICE_SERVER_REPLICA_STRIPE_STORAGE_H_
#define SLUICE_SERVER_REPLICA_STRIPE_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "server/replica/replica_commands.h"
#include "server/state/step_journal.h"
#include "server/state/stripe_checkpoint.h"
#include "server/state/table_sums.h"

namespace sluice {

// A step of the stripe's journal.
struct JournaledSum {
  Step step;
  Incarnation incarnation;           // that made it
  uint64_t checksum = 0;             // of what the step made; see StepVectors
  FloatBuffer sum;                   // empty if the step was made without gradients
  std::vector<TableSums> rows = {};  // in the order of the tables; likewise
};

// StartJournal() may run beside any other method. All others: one thread at a time. All of it takes
// a time that grows with the stripe. `whole` is the layout of the whole vector.
class StripeStorage {
 public:
  virtual ~StripeStorage() = default;

  // Writes the stripe's file of a checkpoint, and returns its checksum when it is on the disk.
  // Errors are FileSystem's.
  virtual absl::StatusOr<uint64_t> Save(const TakeCheckpoint& checkpoint, const Layout& whole,
                                        const StripeCheckpoint& stripe) = 0;

  // Reads what this stripe has of a checkpoint, which perhaps another number of servers has saved.
  // DATA_LOSS names the file that is missing or damaged. Other errors are FileSystem's.
  virtual absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& checkpoint,
                                                const Layout& whole) = 0;

  // Returns the last step after a checkpoint that the stripe's journal can repeat; without one, the
  // checkpoint's. DATA_LOSS if a step is missing between two others; FAILED_PRECONDITION if another
  // build wrote the journal.
  virtual absl::StatusOr<Step> OpenJournal(const LoadCheckpoint& checkpoint,
                                           const Layout& whole) = 0;
  // The next step of the journal that was opened. DATA_LOSS if there is none.
  virtual absl::StatusOr<JournaledSum> NextJournaled() = 0;
  // Starts this incarnation's journal; null if the server was started without one. `listener` is
  // called by the journal's thread. The journal's destructor waits until all is written, or cannot
  // be.
  virtual std::unique_ptr<StepJournal> StartJournal(
      Incarnation incarnation, std::function<void(const JournalReport&)> listener) = 0;

  // Removes the stripe's files of all other checkpoints, and what the journal has from before the
  // oldest. What cannot be removed stays until the next call.
  virtual void Keep(const KeepCheckpoints& checkpoints) = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_STRIPE_STORAGE_H_

// Where a holder keeps its stripe's part of checkpoints: a directory of its server
// (server/durable/stripe_directory.h), or a map in tests.

#ifndef SLUICE_SERVER_HOLDER_STRIPE_STORAGE_H_
#define SLUICE_SERVER_HOLDER_STRIPE_STORAGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/tensor/layout.h"
#include "server/holder/holder_commands.h"
#include "server/state/stripe_checkpoint.h"

namespace sluice {

// One thread at a time calls it. All of it takes a time that grows with the stripe. `whole` is the
// layout of the whole vector.
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

  // Removes the stripe's files of all other checkpoints. What cannot be removed stays until the
  // next call.
  virtual void Keep(const KeepCheckpoints& checkpoints) = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_STRIPE_STORAGE_H_

// Says how much of a checkpoint of several servers is read.

#ifndef SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_PROGRESS_H_
#define SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/progress_line.h"
#include "server/state/shard_checkpoint.h"

namespace sluice {

// Used by one thread. Rows of tables are not counted: the checkpoint does not tell their bytes.
class StripeProgress {
 public:
  // The work is to read parameters and slots of all stripes once.
  StripeProgress(const std::string& path, const ShardCheckpoint& state,
                 const ProgressOutput& output);

  // For StripeStore::Load(). Valid as long as the object.
  std::function<void(uint64_t bytes)> listener();

 private:
  const uint64_t total_;
  uint64_t read_ = 0;
  ProgressLine line_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_CHECKPOINT_STRIPE_PROGRESS_H_

// The published parameters: one immutable snapshot per step.

#ifndef SLUICE_SERVER_SNAPSHOT_STORE_H_
#define SLUICE_SERVER_SNAPSHOT_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/ids.h"
#include "server/float_buffer.h"

namespace sluice {

// One step's parameters. Immutable once published.
struct Snapshot {
  Step step;
  FloatBuffer values;
};

// Makes snapshots of one size, and makes them again from the memory of those that nobody holds any
// more. Externally synchronized, but snapshots may be released on any thread, also after the store
// is gone.
class SnapshotStore {
 public:
  explicit SnapshotStore(uint64_t size);

  // A snapshot to be written, its values undefined.
  std::shared_ptr<Snapshot> Make();

  // Makes `snapshot` the latest.
  void Publish(std::shared_ptr<const Snapshot> snapshot) { latest_ = std::move(snapshot); }

  // Null before the first was published.
  const std::shared_ptr<const Snapshot>& latest() const { return latest_; }

 private:
  class Pool;

  const uint64_t size_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<const Snapshot> latest_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOT_STORE_H_

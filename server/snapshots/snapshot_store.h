// The published parameters: one immutable snapshot for each step. The ServerStripe owns the store.

#ifndef SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_STORE_H_
#define SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/float_buffer.h"
#include "server/snapshots/row_snapshot.h"

namespace sluice {

// One step's parameters. Immutable once published.
struct Snapshot {
  Step step;
  FloatBuffer values;
  std::shared_ptr<const RowSnapshot> rows = nullptr;  // null if the model has no tables
  uint64_t optimizer_steps = 0;                       // see PullHeader
};

// The memory of snapshots.
enum class SnapshotMemory {
  kPrivate,
  // Memory that other processes of the node can read, or private memory if the system has none. The
  // store changes the memory's generation before another snapshot reuses it, so that a reader
  // notices.
  kShared,
};

// Makes snapshots of one size and reuses the memory of released ones. Externally synchronized, but
// any thread may release a snapshot, even after the store is destroyed.
class SnapshotStore {
 public:
  SnapshotStore(uint64_t size, SnapshotMemory memory);

  // Returns a snapshot to be written. Its values are undefined.
  std::shared_ptr<Snapshot> Make();

  // Makes `snapshot` the latest.
  void Publish(std::shared_ptr<const Snapshot> snapshot) {
    latest_ = std::move(snapshot);
    growing_ = nullptr;
  }

  // For inconsistent reads: makes `next`, the snapshot of the next step, readable before it is
  // published. Its elements [0, written) are final.
  void Grow(std::shared_ptr<const Snapshot> next, uint64_t written) {
    growing_ = std::move(next);
    written_ = written;
  }

  // The newest snapshot whose elements before `end` are final.
  const std::shared_ptr<const Snapshot>& newest(uint64_t end) const {
    return growing_ != nullptr && end <= written_ ? growing_ : latest_;
  }

  // Null before the first was published.
  const std::shared_ptr<const Snapshot>& latest() const { return latest_; }

 private:
  class Pool;

  FloatBuffer MakeBuffer() const;

  const uint64_t size_;
  const SnapshotMemory memory_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<const Snapshot> latest_;
  std::shared_ptr<const Snapshot> growing_;
  uint64_t written_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_STORE_H_

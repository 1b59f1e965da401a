// The published parameters: one immutable snapshot per step.

#ifndef SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_STORE_H_
#define SLUICE_SERVER_SNAPSHOTS_SNAPSHOT_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tensor/float_buffer.h"

namespace sluice {

// One step's parameters. Immutable once published.
struct Snapshot {
  Step step;
  FloatBuffer values;
};

// Where snapshots lie.
enum class SnapshotMemory {
  kPrivate,
  // Where processes of the same node can read them, if the system gives such memory. Each snapshot
  // is a generation of its memory.
  kShared,
};

// Makes snapshots of one size, and makes them again from the memory of those that nobody holds any
// more. Externally synchronized, but snapshots may be released on any thread, also after the store
// is gone.
class SnapshotStore {
 public:
  SnapshotStore(uint64_t size, SnapshotMemory memory);

  // A snapshot to be written, its values undefined.
  std::shared_ptr<Snapshot> Make();

  // Makes `snapshot` the latest.
  void Publish(std::shared_ptr<const Snapshot> snapshot) {
    latest_ = std::move(snapshot);
    growing_ = nullptr;
  }

  // For inconsistent reads: elements [0, written) of the snapshot that follows the latest are
  // written, and will not be again.
  void Grow(std::shared_ptr<const Snapshot> next, uint64_t written) {
    growing_ = std::move(next);
    written_ = written;
  }

  // The newest snapshot whose elements up to `end` are written.
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

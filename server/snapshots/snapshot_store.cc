#include "server/snapshots/snapshot_store.h"

#include <glog/logging.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Holds one released snapshot. Training needs two in all: the latest and the next.
class SnapshotStore::Pool {
 public:
  std::unique_ptr<Snapshot> Take() {
    absl::MutexLock lock(&mu_);
    return std::move(spare_);
  }

  // Frees the spare one that there was, after the lock is released: that takes long.
  void Return(std::unique_ptr<Snapshot> snapshot) {
    absl::MutexLock lock(&mu_);
    spare_.swap(snapshot);
  }

 private:
  absl::Mutex mu_;
  std::unique_ptr<Snapshot> spare_ ABSL_GUARDED_BY(mu_);
};

SnapshotStore::SnapshotStore(uint64_t size, SnapshotMemory memory)
    : size_(size), memory_(memory), pool_(std::make_shared<Pool>()) {}

FloatBuffer SnapshotStore::MakeBuffer() const {
  if (memory_ == SnapshotMemory::kPrivate) return FloatBuffer(size_);
  auto memory = SharedMemory::Create(size_);
  if (memory.ok()) return FloatBuffer(*std::move(memory));
  LOG_FIRST_N(WARNING, 1) << "parameters go through sockets: " << memory.status().message();
  return FloatBuffer(size_);
}

std::shared_ptr<Snapshot> SnapshotStore::Make() {
  std::unique_ptr<Snapshot> snapshot = pool_->Take();
  if (snapshot == nullptr) {
    snapshot = std::make_unique<Snapshot>();
    snapshot->values = MakeBuffer();
  }
  if (snapshot->values.memory() != nullptr) snapshot->values.memory()->StartGeneration();
  return std::shared_ptr<Snapshot>(snapshot.release(), [pool = pool_](Snapshot* released) {
    released->rows = nullptr;
    pool->Return(std::unique_ptr<Snapshot>(released));
  });
}

}  // namespace sluice

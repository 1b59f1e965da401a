#include "server/snapshot_store.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Keeps one released snapshot: steady state needs two in all, the latest and the next.
class SnapshotStore::Pool {
 public:
  std::unique_ptr<Snapshot> Take() {
    absl::MutexLock lock(&mu_);
    return std::move(spare_);
  }

  void Return(std::unique_ptr<Snapshot> snapshot) {
    absl::MutexLock lock(&mu_);
    spare_ = std::move(snapshot);
  }

 private:
  absl::Mutex mu_;
  std::unique_ptr<Snapshot> spare_ ABSL_GUARDED_BY(mu_);
};

SnapshotStore::SnapshotStore(uint64_t size) : size_(size), pool_(std::make_shared<Pool>()) {}

std::shared_ptr<Snapshot> SnapshotStore::Make() {
  std::unique_ptr<Snapshot> snapshot = pool_->Take();
  if (snapshot == nullptr) {
    snapshot = std::make_unique<Snapshot>();
    snapshot->values = FloatBuffer(size_);
  }
  return std::shared_ptr<Snapshot>(snapshot.release(), [pool = pool_](Snapshot* released) {
    pool->Return(std::unique_ptr<Snapshot>(released));
  });
}

}  // namespace sluice

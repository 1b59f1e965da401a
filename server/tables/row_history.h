// The rows of the past that snapshots still need: for each step after the oldest living snapshot,
// what it changed. Without an older snapshot than the latest it is empty.

#ifndef SLUICE_SERVER_TABLES_ROW_HISTORY_H_
#define SLUICE_SERVER_TABLES_ROW_HISTORY_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/tables/past_rows.h"

namespace sluice {

// Any thread may call it. A caller may hold the mutex of one bucket.
class RowHistory {
 public:
  // A snapshot of `step` begins to live, or ends.
  void Hold(uint64_t step) ABSL_LOCKS_EXCLUDED(mu_);
  void Release(uint64_t step) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds the latest step, before it changes the first bucket. The caller then changes the buckets
  // of `past`, each under its mutex.
  void Add(std::shared_ptr<PastStep> past) ABSL_LOCKS_EXCLUDED(mu_);
  // The step is made in all buckets.
  void EndStep() ABSL_LOCKS_EXCLUDED(mu_);

  // Calls take(rows, row) for the state of `id` at `step`, which a snapshot holds, and returns
  // true. Returns false if no later step has changed it. The caller holds the bucket's mutex.
  bool Find(uint64_t step, uint64_t key, RowId id,
            absl::FunctionRef<void(const PastRows&, const PastRow&)> take) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Appends all ids of a bucket that steps after `step` have changed. The caller holds the bucket's
  // mutex.
  void AppendIds(uint64_t step, uint64_t key, std::vector<RowId>* ids) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // How many steps it keeps.
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Steps = std::map<uint64_t, std::shared_ptr<PastStep>>;

  // Takes out what no snapshot needs, so that it is freed without the lock.
  std::vector<std::shared_ptr<PastStep>> TakeUnneeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::map<uint64_t, int> held_ ABSL_GUARDED_BY(mu_);  // snapshots by step
  Steps steps_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> latest_{0};  // step that changed rows
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_HISTORY_H_

// The rows of the past that snapshots still need: for each step after the oldest living snapshot,
// what it changed. Without an older snapshot than the latest it is empty.
//
// Steps between which no snapshot lives are merged, as the runs of a log-structured merge tree
// (O'Neil et al. 1996): two neighbours become one if the older is at most twice as large. So a
// snapshot that lives for many steps, such as that of a checkpoint, keeps at most about two old
// copies of each row, and a row is copied a logarithmic number of times.

#ifndef SLUICE_SERVER_TABLES_ROW_HISTORY_H_
#define SLUICE_SERVER_TABLES_ROW_HISTORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
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
  // The step is made in all buckets. The thread that makes steps calls it, and merges here.
  void EndStep() ABSL_LOCKS_EXCLUDED(mu_);

  // Calls take(rows, row) for the state of `id` at `step`, which a snapshot holds, and returns
  // true. Returns false if no later step has changed it. The caller holds the bucket's mutex.
  bool Find(uint64_t step, uint64_t key, RowId id,
            absl::FunctionRef<void(const PastRows&, const PastRow&)> take) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Appends the ids of a bucket that steps after `step` have changed, and that were touched before
  // it, but after step `after`. The caller holds the bucket's mutex.
  void AppendIds(uint64_t step, uint64_t after, uint64_t key, std::vector<RowId>* ids) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // How many steps it keeps; those that were merged count as one. And how many rows.
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);
  size_t rows() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Steps = std::map<uint64_t, std::shared_ptr<PastStep>>;

  struct Neighbours {
    std::shared_ptr<PastStep> older, newer;
  };

  // Two steps that should be merged, or nothing.
  absl::optional<Neighbours> FindMerge() const ABSL_LOCKS_EXCLUDED(mu_);
  // Puts `merged` in the place of the two, if both are still needed.
  void Replace(const Neighbours& both, std::shared_ptr<PastStep> merged) ABSL_LOCKS_EXCLUDED(mu_);
  bool AnyHeld(uint64_t begin, uint64_t end) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out what no snapshot needs, so that it is freed without the lock.
  std::vector<std::shared_ptr<PastStep>> TakeUnneeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::map<uint64_t, int> held_ ABSL_GUARDED_BY(mu_);  // snapshots by step
  Steps steps_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> latest_{0};  // step that changed rows
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_HISTORY_H_

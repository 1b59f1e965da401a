// A push that is arriving, through one call or several.

#ifndef SLUICE_SERVER_AGGREGATION_GATHERED_PUSH_H_
#define SLUICE_SERVER_AGGREGATION_GATHERED_PUSH_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/parallel.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "server/aggregation/pending_push.h"

namespace sluice {

// May be used by any thread: chunks are decoded and looked at side by side.
class GatheredPush {
 public:
  // `transforms` and `parallel` outlive it.
  GatheredPush(std::unique_ptr<PendingPush> push, const TransformRegistry& transforms,
               Parallel& parallel)
      : transforms_(transforms),
        parallel_(parallel),
        layout_(push->layout()),
        push_(std::move(push)) {}

  // Takes a chunk, or what is wrong with it; the summary. False if nothing more is taken, since it
  // has ended or something was wrong.
  bool Add(absl::StatusOr<TensorChunk> chunk) ABSL_LOCKS_EXCLUDED(mu_);
  bool Summarize(const absl::StatusOr<PushSummary>& summary) ABSL_LOCKS_EXCLUDED(mu_);

  // What was wrong first.
  absl::Status trouble() const ABSL_LOCKS_EXCLUDED(mu_);

  // The first call has ended: what was gathered, and what was wrong with it. That is also a chunk
  // of a lane which is not in its place yet. No push if it was told already.
  struct Gathered {
    std::unique_ptr<PendingPush> push;
    absl::Status trouble;
  };
  Gathered End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Takes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return push_ != nullptr && trouble_.ok();
  }

  const TransformRegistry& transforms_;
  Parallel& parallel_;
  const std::shared_ptr<const Layout> layout_;
  mutable absl::Mutex mu_;
  std::unique_ptr<PendingPush> push_ ABSL_GUARDED_BY(mu_);  // null once it has ended
  int preparing_ ABSL_GUARDED_BY(mu_) = 0;                  // chunks
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_GATHERED_PUSH_H_

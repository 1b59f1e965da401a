// A push whose chunks arrive through one gRPC call, or through a call and its lanes.
//
// The call and each of its lanes share one GatheredPush and add the chunks that they receive. The
// first error ends the push: nobody's chunks are taken after it. The call that began the push takes
// the result with End().

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
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "common/tensor/tensor_chunk.h"
#include "server/aggregation/pending_push.h"

namespace sluice {

// All methods may be called from any thread. Chunks of several threads are decoded and checked at
// the same time, outside the lock.
class GatheredPush {
 public:
  // `transforms` and `parallel` outlive it.
  GatheredPush(std::unique_ptr<PendingPush> push, const TransformRegistry& transforms,
               Parallel& parallel)
      : transforms_(transforms),
        parallel_(parallel),
        layout_(push->layout()),
        push_(std::move(push)) {}

  // Add() takes a chunk of this server's stripe (TakeStripe()), AddIds() ids of rows, and
  // Summarize() the summary. If the message could not be decoded, they take that error, and the
  // push fails with it. They return false if the push has ended or has an error. The caller then
  // stops reading.
  bool Add(absl::StatusOr<TensorChunk> chunk) ABSL_LOCKS_EXCLUDED(mu_);
  bool AddIds(absl::StatusOr<RowIds> ids) ABSL_LOCKS_EXCLUDED(mu_);
  bool Summarize(const absl::StatusOr<PushSummary>& summary) ABSL_LOCKS_EXCLUDED(mu_);

  const Layout& layout() const { return *layout_; }

  // The first error, or OK.
  absl::Status error() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the push and returns it with its first error. If a lane is still checking a chunk, the
  // error is BAD_CHUNK. A second call returns no push.
  struct Gathered {
    std::unique_ptr<PendingPush> push;  // null if End() was called before
    absl::Status error;
  };
  Gathered End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::shared_ptr<FloatBuffer> memory() const ABSL_LOCKS_EXCLUDED(mu_);
  std::string ElementName(uint64_t offset) const ABSL_LOCKS_EXCLUDED(mu_);
  bool Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Reserve(const TensorChunk& chunk) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Place(absl::StatusOr<TensorChunk> chunk) ABSL_LOCKS_EXCLUDED(mu_);
  bool Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Takes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return push_ != nullptr && error_.ok(); }

  const TransformRegistry& transforms_;
  Parallel& parallel_;
  const std::shared_ptr<const Layout> layout_;
  mutable absl::Mutex mu_;
  std::unique_ptr<PendingPush> push_ ABSL_GUARDED_BY(mu_);  // null after End()
  int preparing_ ABSL_GUARDED_BY(mu_) = 0;                  // reserved, not placed
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_AGGREGATION_GATHERED_PUSH_H_

// Collects the chunks of one pull, whichever connection brings them.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/coverage.h"
#include "common/tensor/stripe_span.h"
#include "common/trace/trace.h"

namespace sluice {

// Any thread may use it. Several chunks are decoded at once, each into its own elements.
class GrpcParameterSink {
 public:
  // Writes to `parameters` what the answer to `call` brings. All outlive the sink, and so do
  // `transforms`, and `trace` unless it is null.
  GrpcParameterSink(absl::string_view call, const StripeSpan<float>& parameters,
                    const TransformRegistry& transforms, Trace* trace)
      : call_(call),
        parameters_(parameters),
        size_(parameters.size()),
        transforms_(transforms),
        trace_(trace),
        coverage_(size_) {}

  // Decodes a PullParamsResponse that holds a chunk. INTERNAL if it holds none; otherwise the
  // errors of DecodeChunk(), Coverage and DecodeValues().
  absl::Status Take(const grpc::ByteBuffer& message) ABSL_LOCKS_EXCLUDED(mu_);

  // A lane that calls Take() begins, or has ended with `status`. Its error matters only if elements
  // are missing in the end.
  void BeginLane() ABSL_LOCKS_EXCLUDED(mu_);
  void EndLane(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until all elements have arrived, all lanes have ended, or Cancel() is called. OK if all
  // have arrived. Otherwise BAD_CHUNK; or, if a lane lost some, CORRUPT_CHUNK or UNAVAILABLE: then
  // the pull may be repeated; or CANCELLED.
  absl::Status AwaitComplete() ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

  // Whether any element may have been written, also by a Take() that failed.
  bool wrote() const ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes of all messages that Take() was given.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::string_view call_;
  const StripeSpan<float> parameters_;
  const uint64_t size_;  // of the parameters
  const TransformRegistry& transforms_;
  Trace* const trace_;
  mutable absl::Mutex mu_;
  Coverage coverage_ ABSL_GUARDED_BY(mu_);     // elements that are decoded or being decoded
  uint64_t written_ ABSL_GUARDED_BY(mu_) = 0;  // elements that are decoded
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int lanes_ ABSL_GUARDED_BY(mu_) = 0;  // that have not ended
  bool had_lanes_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status lane_error_ ABSL_GUARDED_BY(mu_);  // the first, or a corrupt chunk
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_

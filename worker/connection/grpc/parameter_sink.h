// Where the chunks of a pull go, through whichever connection they come.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/tensor/coverage.h"
#include "common/trace/trace.h"

namespace sluice {

// May be used by any thread: chunks are decoded side by side, each into its own elements.
class GrpcParameterSink {
 public:
  // Into `parameters`, which outlive it; so does `trace`, unless it is null.
  GrpcParameterSink(absl::Span<float> parameters, Trace* trace)
      : parameters_(parameters), trace_(trace), coverage_(parameters.size()) {}

  // Takes a PullParamsResponse that holds a chunk. INTERNAL if it holds none; else the errors of
  // DecodeChunk(), Coverage and DecodeValues().
  absl::Status Take(const grpc::ByteBuffer& message) ABSL_LOCKS_EXCLUDED(mu_);

  // A lane has begun that calls Take(), or ended. What went wrong there matters only if something
  // is missing in the end.
  void BeginLane() ABSL_LOCKS_EXCLUDED(mu_);
  void EndLane(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until all elements are there or no lane has anything left to bring. OK if all are; else
  // BAD_CHUNK, or, if a lane has lost some, CORRUPT_CHUNK or UNAVAILABLE: then the pull may be
  // repeated.
  absl::Status AwaitComplete() ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes of the messages that were taken.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Span<float> parameters_;
  Trace* const trace_;
  mutable absl::Mutex mu_;
  Coverage coverage_ ABSL_GUARDED_BY(mu_);     // what has come, and is decoded or being decoded
  uint64_t written_ ABSL_GUARDED_BY(mu_) = 0;  // elements that are in their place
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int lanes_ ABSL_GUARDED_BY(mu_) = 0;  // that have not ended
  bool had_lanes_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status lane_trouble_ ABSL_GUARDED_BY(mu_);  // the first, or a corrupt chunk
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PARAMETER_SINK_H_

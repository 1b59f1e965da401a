// One lane's share of a push: the lane's thread sends the chunks that are offered.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PUSH_LANE_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PUSH_LANE_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {

// Used by one thread, beside the lane's own. Destroying it cancels the lane's share.
class GrpcPushLane {
 public:
  GrpcPushLane(std::shared_ptr<GrpcLane> lane, const v1::Lane& name, absl::Duration timeout,
               const CallMetadata& metadata);
  ~GrpcPushLane();

  GrpcPushLane(const GrpcPushLane&) = delete;
  GrpcPushLane& operator=(const GrpcPushLane&) = delete;

  // Takes a chunk to send, and returns at once. False if the lane is busy or has ended: then the
  // chunk was not taken.
  bool Offer(const grpc::ByteBuffer& chunk) ABSL_LOCKS_EXCLUDED(mu_);

  // End() says that no more chunks follow. Await() then waits for the server's answer: OK if it has
  // taken all chunks, or if the push has ended.
  void End();
  absl::Status Await() ABSL_LOCKS_EXCLUDED(mu_);

  // Any thread may call it. Await() then ends soon.
  void Cancel() { stream_.Cancel(); }

 private:
  // Chunks that wait or are being sent. With one of each, the lane is never idle.
  static constexpr int kMostOffered = 2;

  void Send(const grpc::ByteBuffer& message, Follows follows) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<GrpcLane> lane_;
  GrpcStream stream_;  // used by the lane's thread, until that has drained
  absl::Mutex mu_;
  int offered_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
  absl::Status answer_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PUSH_LANE_H_

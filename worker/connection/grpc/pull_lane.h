// One lane's share of a pull: reads chunks on the lane's thread until there are no more.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_PULL_LANE_H_
#define SLUICE_WORKER_CONNECTION_GRPC_PULL_LANE_H_

#include <memory>

#include "absl/time/time.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/lanes.h"
#include "worker/connection/grpc/parameter_sink.h"
#include "worker/connection/grpc/stream.h"

namespace sluice {

// Used by one thread, beside the lane's own. Destroying it cancels what has not arrived.
class GrpcPullLane {
 public:
  // Starts at once. `sink`, which outlives it, gets the chunks and how the lane ended.
  GrpcPullLane(std::shared_ptr<GrpcLane> lane, const v1::Lane& name, absl::Duration timeout,
               const CallMetadata& metadata, GrpcParameterSink& sink);
  ~GrpcPullLane();

  GrpcPullLane(const GrpcPullLane&) = delete;
  GrpcPullLane& operator=(const GrpcPullLane&) = delete;

 private:
  void Run(const v1::Lane& name);

  const std::shared_ptr<GrpcLane> lane_;
  GrpcParameterSink& sink_;
  GrpcStream stream_;  // used by the lane's thread, until that has drained
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_PULL_LANE_H_

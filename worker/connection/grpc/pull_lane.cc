#include "worker/connection/grpc/pull_lane.h"

#include <utility>

#include "common/wire/chunk.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr char kPullLane[] = "/sluice.v1.ParameterServer/PullLane";

}  // namespace

GrpcPullLane::GrpcPullLane(std::shared_ptr<GrpcLane> lane, const v1::Lane& name,
                           absl::Duration timeout, const CallMetadata& metadata,
                           GrpcParameterSink& sink)
    : lane_(std::move(lane)), sink_(sink), stream_(*lane_->stub, kPullLane, timeout, metadata) {
  sink_.BeginLane();
  lane_->thread.Run([this, name] { Run(name); });
}

GrpcPullLane::~GrpcPullLane() {
  stream_.Cancel();
  lane_->thread.Drain();
}

void GrpcPullLane::Run(const v1::Lane& name) {
  stream_.Write(EncodeMessage(name), Follows::kNothing);
  grpc::ByteBuffer message;
  absl::Status taken;
  while (taken.ok() && stream_.Read(&message)) taken = sink_.Take(message);
  if (!taken.ok()) stream_.Cancel();
  const absl::Status end = EndOf(stream_.Finish());
  sink_.EndLane(taken.ok() ? end : taken);
}

}  // namespace sluice

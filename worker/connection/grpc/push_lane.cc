#include "worker/connection/grpc/push_lane.h"

#include <utility>

#include "common/wire/chunk.h"
#include "worker/connection/grpc/answer.h"

namespace sluice {
namespace {

constexpr char kPushLane[] = "/sluice.v1.ParameterServer/PushLane";

}  // namespace

GrpcPushLane::GrpcPushLane(std::shared_ptr<GrpcLane> lane, const v1::Lane& name,
                           absl::Duration timeout, const CallMetadata& metadata)
    : lane_(std::move(lane)), stream_(*lane_->stub, kPushLane, timeout, metadata) {
  v1::PushGradientsRequest message;
  *message.mutable_lane() = name;
  lane_->thread.Run([this, first = EncodeMessage(message)] { Send(first, Follows::kMoreAtOnce); });
}

GrpcPushLane::~GrpcPushLane() {
  stream_.Cancel();
  lane_->thread.Drain();
}

bool GrpcPushLane::Offer(const grpc::ByteBuffer& chunk) {
  {
    absl::MutexLock lock(&mu_);
    if (!open_ || offered_ == kMostOffered) return false;
    ++offered_;
  }
  lane_->thread.Run([this, chunk] {
    Send(chunk, Follows::kMore);
    absl::MutexLock lock(&mu_);
    --offered_;
  });
  return true;
}

void GrpcPushLane::End() {
  lane_->thread.Run([this] {
    stream_.EndWrites();
    const auto answer = ReadAnswer<v1::PushLaneResponse>("PushLane", stream_);
    absl::MutexLock lock(&mu_);
    answer_ = answer.status();
  });
}

absl::Status GrpcPushLane::Await() {
  lane_->thread.Drain();
  absl::MutexLock lock(&mu_);
  return answer_;
}

void GrpcPushLane::Send(const grpc::ByteBuffer& message, Follows follows) {
  {
    absl::MutexLock lock(&mu_);
    if (!open_) return;
  }
  const bool sent = stream_.Write(message, follows);
  absl::MutexLock lock(&mu_);
  open_ = sent;
}

}  // namespace sluice

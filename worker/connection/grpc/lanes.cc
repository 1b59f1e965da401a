#include "worker/connection/grpc/lanes.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// Short, because the server was reached a moment ago.
constexpr absl::Duration kConnectTimeout = absl::Seconds(2);

}  // namespace

std::vector<std::shared_ptr<GrpcLane>> GrpcLanes::Get(size_t count) {
  // A broken lane is opened again, with the credentials as they are now.
  const auto broke = [](const std::shared_ptr<GrpcLane>& lane) {
    return lane->channel.get()->GetState(false) != GRPC_CHANNEL_READY;
  };
  lanes_.erase(std::remove_if(lanes_.begin(), lanes_.end(), broke), lanes_.end());
  if (lanes_.size() > count) lanes_.resize(count);
  while (lanes_.size() < count && Open()) {
  }
  return lanes_;
}

void GrpcLanes::Close() {
  lanes_.clear();
  gave_up_ = false;
}

bool GrpcLanes::Open() {
  if (gave_up_) return false;
  auto lane = std::make_shared<GrpcLane>(address_, credentials_);
  const absl::Status connected = lane->channel.Connect(kConnectTimeout);
  gave_up_ = !connected.ok();
  if (gave_up_) {
    LOG(WARNING) << "continues with " << 1 + lanes_.size()
                 << " connections, because another one cannot be opened to " << address_ << ": "
                 << connected.message();
    return false;
  }
  lane->stub = std::make_unique<grpc::GenericStub>(lane->channel.get());
  lanes_.push_back(std::move(lane));
  return true;
}

}  // namespace sluice

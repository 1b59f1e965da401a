#include "worker/connection/grpc/tensor_paths.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace sluice {
namespace {

// A further connection is not worth it for fewer elements.
constexpr uint64_t kElementsPerConnection = 4 * kChunkElements;
constexpr int kMostAutomatic = 8;  // connections with --connections=auto

int MostConnections(const std::string& address, int connections, bool near) {
  // Between processes of one machine, several connections are not faster.
  if ((connections == 0 && near) || absl::StartsWith(address, "unix:")) return 1;
  return connections == 0 ? kMostAutomatic : connections;
}

}  // namespace

TensorPaths::TensorPaths(const std::string& address, const CredentialsSource& credentials,
                         int connections, bool near)
    : lanes_(address, credentials),
      automatic_(connections == 0),
      most_(MostConnections(address, connections, near)) {}

void TensorPaths::Begin(SessionId session, uint64_t elements,
                        std::shared_ptr<const SharedMemory> memory) {
  session_ = session;
  const uint64_t worth = std::max<uint64_t>(1, elements / kElementsPerConnection);
  const auto most = static_cast<int>(std::min<uint64_t>(most_, worth));
  connections_ = automatic_ ? 1 : most;
  chooser_.reset();
  if (automatic_ && most > 1) chooser_.emplace(most);
  offer_ = std::make_shared<MemoryOffer>(std::move(memory));
}

// A server of several may not know the session yet. It would refuse lanes, and miss what they
// bring.
LaneUse TensorPaths::UseLanes() {
  LaneUse use;
  if (offer_ == nullptr || !offer_->answered() || memory() != nullptr) return use;
  use.lanes = lanes_.Get((chooser_.has_value() ? chooser_->count() : connections_) - 1);
  if (use.lanes.empty()) return use;
  use.name.set_session(session_.value());
  use.name.set_call_number(++calls_);
  return use;
}

}  // namespace sluice

#include "tests/server/striped_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/testing/server/connect.h"

namespace sluice {

StripedJob::StripedJob(const ShardOptions& options, uint32_t servers)
    : directory_(*PrivateDirectory::Create()) {
  ServerOptions first;
  first.shard = options;
  first.listen = SocketOf(0);
  first.servers = servers;
  first_ = std::make_unique<RunningServer>(first);
  for (uint32_t i = 1; i < servers; ++i) {
    ReplicaServerOptions replica;
    replica.index = i;
    replica.servers = servers;
    replica.leader = SocketOf(0).ToString();
    replica.listen = SocketOf(i);
    replica.snapshots = options.snapshots;
    replicas_.push_back(std::make_unique<RunningReplica>(replica));
  }
  // UNAVAILABLE until the first server knows all of them; NOT_INITIALIZED after that.
  const auto connection = ConnectTo(address());
  while (absl::IsUnavailable(connection->Join(ObserverRequest("early")).status())) {
  }
}

bool StripedJob::EndsWell() {
  return first_->exit_code() == 0 &&
         std::all_of(replicas_.begin(), replicas_.end(),
                     [](const auto& replica) { return replica->exit_code() == 0; });
}

Address StripedJob::SocketOf(uint32_t index) const {
  Address address;
  address.unix_path = absl::StrCat(directory_->path(), "/", index, ".sock");
  return address;
}

}  // namespace sluice

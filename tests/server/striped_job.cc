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
    HolderServerOptions holder;
    holder.index = i;
    holder.servers = servers;
    holder.sequencer = SocketOf(0).ToString();
    holder.listen = SocketOf(i);
    holder.snapshots = options.snapshots;
    holders_.push_back(std::make_unique<RunningHolder>(holder));
  }
  // UNAVAILABLE until the first server knows all of them; NOT_INITIALIZED after that.
  const auto connection = ConnectTo(address());
  while (absl::IsUnavailable(connection->Join(ObserverRequest("early")).status())) {
  }
}

bool StripedJob::EndsWell() {
  return first_->exit_code() == 0 &&
         std::all_of(holders_.begin(), holders_.end(),
                     [](const auto& holder) { return holder->exit_code() == 0; });
}

Address StripedJob::SocketOf(uint32_t index) const {
  Address address;
  address.unix_path = absl::StrCat(directory_->path(), "/", index, ".sock");
  return address;
}

}  // namespace sluice

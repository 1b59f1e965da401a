// Several servers, each with a shard of its own that holds one stripe, for tests of the worker's
// side. The connection to the first plays the leader: it names the servers, and answers a push
// or an offer when the others have their parts.

#ifndef SLUICE_TESTS_TESTING_SERVER_STRIPED_WORLDS_H_
#define SLUICE_TESTS_TESTING_SERVER_STRIPED_WORLDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/tensor/stripes.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/transport.h"
#include "worker/connection/striped_connection.h"

namespace sluice {

// Used by one thread. Every stripe has elements.
class StripedWorlds {
 public:
  StripedWorlds(const Layout& layout, uint32_t servers, Transport transport,
                const ShardOptions& options = Sync(1));

  std::unique_ptr<ServerConnection> Connect(absl::Duration patience = kLeaderPatience);

  const Stripes& stripes() const { return stripes_; }
  ServerWorld& world(uint32_t server) { return *worlds_[server]; }

 private:
  const Layout layout_;
  const Stripes stripes_;
  const Transport transport_;
  std::vector<std::unique_ptr<ServerWorld>> worlds_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_STRIPED_WORLDS_H_

// A job of several servers that run in this process.

#ifndef SLUICE_TESTS_SERVER_STRIPED_JOB_H_
#define SLUICE_TESTS_SERVER_STRIPED_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/net/private_directory.h"
#include "server/state/shard_options.h"
#include "tests/server/running_server.h"

namespace sluice {

// Used by one thread. Ends when all workers have left.
class StripedJob {
 public:
  // Returns when a worker may join.
  StripedJob(const ShardOptions& options, uint32_t servers);

  // Of the first server, which workers join.
  const std::string& address() const { return first_->address(); }

  // Waits for the end. Whether every server's exit code is 0, so that all counters add up.
  bool EndsWell();

 private:
  Address SocketOf(uint32_t index) const;

  const std::unique_ptr<PrivateDirectory> directory_;
  std::unique_ptr<RunningServer> first_;
  std::vector<std::unique_ptr<RunningReplica>> replicas_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_STRIPED_JOB_H_

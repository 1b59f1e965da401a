// A server in this process with its real gRPC service, and a Job for each worker:
//
//   JobWorld world(Sync(2));  // tests/testing/shard/shard_world.h
//   RemoteOptimizer optimizer(world.JobOf("a"), *model, torch::optim::SGDOptions(0.1));

#ifndef SLUICE_TESTS_TESTING_SERVER_JOB_WORLD_H_
#define SLUICE_TESTS_TESTING_SERVER_JOB_WORLD_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/call_once.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/net/private_directory.h"
#include "server/rpc/server.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "worker/job.h"

namespace sluice {

// Used by one thread; any thread may use a Job. Its clock stands still, so no lease ends by itself.
class JobWorld {
 public:
  explicit JobWorld(const ShardOptions& options);

  // Stops the server, and expects that the push counters add up.
  ~JobWorld();

  // The job of the worker with that name: each call returns the same object, which lives as long as
  // the world. `patience`, of the first call, is how long the worker waits for a server that is
  // gone.
  const Job& JobOf(const std::string& name, absl::Duration patience = absl::Seconds(30));

  // Stops the server without telling the workers.
  void StopServer();

  // Ends the leases, and so the sessions, of all who have joined. They may join again.
  void EndLeases();

  // Waits until training has finished and the last observer has left; false if that takes too long.
  bool AwaitDeserted() { return deserted_.WaitForNotificationWithTimeout(absl::Seconds(30)); }

  // The server's record of the worker or observer with that name, which must have joined.
  SessionRecord RecordOf(const std::string& name) const;

  Shard& shard() { return shard_; }

 private:
  FakeClock clock_;
  absl::Notification deserted_;
  absl::once_flag deserted_once_;  // the event may come again, after an observer came back
  Shard shard_;
  const std::unique_ptr<PrivateDirectory> directory_;
  const std::unique_ptr<GrpcServer> door_;
  std::map<std::string, Job> jobs_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_JOB_WORLD_H_

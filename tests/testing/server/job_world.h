// A server in this process with its real gRPC service, and the jobs of programs that train with it:
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

// For one thread; the jobs may be used by any. No lease ends, since its clock stands still.
class JobWorld {
 public:
  explicit JobWorld(const ShardOptions& options);

  // Expects that the server's counters balance.
  ~JobWorld();

  // Of the worker of that name: the same object at each call, for as long as the world lasts.
  // `patience` is for a server that is gone.
  const Job& JobOf(const std::string& name, absl::Duration patience = absl::Seconds(30));

  // The server goes down without a word.
  void StopServer();

  // Ends the leases of all who have joined, whose sessions are over then. They may join again.
  void EndLeases();

  // Waits until training has finished and the last observer has left; false if that takes too long.
  bool AwaitDeserted() { return deserted_.WaitForNotificationWithTimeout(absl::Seconds(30)); }

  // What the server knows of the worker or observer of that name, which has joined.
  SessionRecord RecordOf(const std::string& name) const;

  Shard& shard() { return shard_; }

 private:
  FakeClock clock_;
  absl::Notification deserted_;
  absl::once_flag deserted_once_;  // it may be so again, after somebody came back
  Shard shard_;
  const std::unique_ptr<PrivateDirectory> directory_;
  const std::unique_ptr<GrpcServer> door_;
  std::map<std::string, Job> jobs_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_JOB_WORLD_H_

// Servers of a job that run in this process.

#ifndef SLUICE_TESTS_SERVER_RUNNING_SERVER_H_
#define SLUICE_TESTS_SERVER_RUNNING_SERVER_H_

#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/replica_server.h"
#include "server/server.h"
#include "tests/testing/status.h"

namespace sluice {

// One server in a thread of its own, which starts and serves it.
template <typename Options, typename AServer>
class Running {
 public:
  explicit Running(Options options)
      : thread_([this, options = std::move(options)]() mutable {
          auto server = AServer::Start(std::move(options));
          ASSERT_THAT(server, IsOk());
          address_ = (*server)->address().ToString();
          started_.Notify();
          exit_code_ = (*server)->Serve();
        }) {
    started_.WaitForNotification();
  }
  ~Running() {
    if (thread_.joinable()) thread_.join();
  }

  const std::string& address() const { return address_; }
  // Waits until it has ended.
  int exit_code() {
    if (thread_.joinable()) thread_.join();
    return exit_code_;
  }

 private:
  absl::Notification started_;
  std::string address_;
  int exit_code_ = -1;
  std::thread thread_;
};

using RunningServer = Running<ServerOptions, Server>;
using RunningReplica = Running<ReplicaServerOptions, ReplicaServer>;

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_RUNNING_SERVER_H_

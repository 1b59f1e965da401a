// Several servers that are started by hand, with workers that push gradients of one value (see
// pushing_worker_program.cc).

#ifndef SLUICE_TESTS_SYSTEM_SERVERS_BY_HAND_H_
#define SLUICE_TESTS_SYSTEM_SERVERS_BY_HAND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {

inline constexpr int kServers = 3;
inline constexpr int kWithoutEnd = 1'000'000;  // steps

class ServersByHand : public ::testing::Test {
 protected:
  ServersByHand() {
    for (int i = 0; i < kServers; ++i) {
      addresses_.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    }
  }

  const std::string& first() const { return addresses_[0]; }

  std::unique_ptr<Process> StartServer(int index) const {
    auto server = Start(ServerProgram(With(With({"--servers=" + absl::StrJoin(addresses_, ","),
                                                 absl::StrCat("--index=", index), "--workers=2"},
                                                leases_),
                                           server_flags_)));
    EXPECT_THAT(server->WaitForOutput("listening on " + addresses_[index]), IsOk());
    return server;
  }

  void StartServers(const std::vector<int>& order = {0, 1, 2}) {
    servers_.resize(kServers);
    for (const int index : order) servers_[index] = StartServer(index);
  }

  // Its parameters are minus the sum of the gradients' means.
  std::unique_ptr<Process> StartWorker(int gradient, int steps, const Words& flags = {}) const {
    return Start(With(With({RunfilePath("tests/testing/process/pushing_worker_program"),
                            "--server=" + first(), absl::StrCat("--name=worker", gradient),
                            absl::StrCat("--steps=", steps), absl::StrCat("--gradient=", gradient)},
                           flags),
                      worker_flags_));
  }
  void StartWorkers(int steps, const Words& flags = {}) {
    for (const int gradient : {1, 3}) workers_.push_back(StartWorker(gradient, steps, flags));
  }

  void ExpectExitCodes(const std::vector<std::unique_ptr<Process>>& processes, int code) const {
    for (const auto& process : processes) {
      EXPECT_THAT(process->Wait(kJob), IsOkAndHolds(code)) << process->output();
    }
  }

  void ExpectEnded(int steps) {
    ExpectExitCodes(workers_, 0);
    ExpectExitCodes(servers_, 0);
    for (const auto& worker : workers_) {
      EXPECT_THAT(LinesWith(worker->output(), "parameters at"),
                  ::testing::ElementsAre(absl::StrFormat("parameters at step %d: %d to %d", steps,
                                                         -2 * steps, -2 * steps)))
          << worker->output() << servers_[0]->output();
    }
  }

  void ExpectTrained(int steps) {
    ExpectEnded(steps);
    EXPECT_EQ(Counters(servers_[0]->output()),
              absl::StrFormat("%d steps, %d received: %d accepted", steps, 2 * steps, 2 * steps))
        << servers_[0]->output();
  }

  void ExpectEachSays(const std::vector<std::unique_ptr<Process>>& processes,
                      const std::string& sentence) const {
    for (const auto& process : processes)
      EXPECT_THAT(process->output(), ::testing::HasSubstr(sentence));
  }

  // Waits until the step stays the same for a while.
  void AwaitStandstill() const {
    uint64_t last = 0;
    for (int same = 0; same < 200;) {
      const auto step = StepOf(first());
      ASSERT_THAT(step, IsOk());
      same = *step == last ? same + 1 : 0;
      last = *step;
    }
  }

  std::vector<std::string> addresses_;
  // A worker on a busy machine does not lose its place.
  Words leases_ = {"--lease=30", "--server-lease=2"};
  Words server_flags_;
  Words worker_flags_;
  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::unique_ptr<Process>> workers_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SYSTEM_SERVERS_BY_HAND_H_

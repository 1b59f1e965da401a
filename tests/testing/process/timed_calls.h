// Small calls to a running server, made again and again, and the time that each took.
//
//   TimedCalls state(ServerStateCalls(address), absl::Milliseconds(5));
//   …
//   const auto seconds = state.End();

#ifndef SLUICE_TESTS_TESTING_PROCESS_TIMED_CALLS_H_
#define SLUICE_TESTS_TESTING_PROCESS_TIMED_CALLS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/stop_flag.h"

namespace sluice {

// Makes one call and waits for its answer. Each kind of call has a connection of its own.
using TimedCall = std::function<absl::Status()>;

// Joins as an observer of a job whose layout is ParametersOnly(elements) (tests/testing/vectors.h).
// The calls are heartbeats of that session.
absl::StatusOr<TimedCall> HeartbeatCalls(const std::string& address, uint32_t elements);
// The calls join as such an observer, wait for the welcome, and end the session.
TimedCall JoinCalls(const std::string& address, uint32_t elements);
// Inspector.GetServerState, and Inspector.GetParameter of the tensor "w".
TimedCall ServerStateCalls(const std::string& address);
TimedCall StatisticsCalls(const std::string& address);

// Makes calls on a thread of its own, with a pause before each. Used by one thread.
class TimedCalls {
 public:
  TimedCalls(TimedCall call, absl::Duration pause);
  ~TimedCalls();

  TimedCalls(const TimedCalls&) = delete;
  TimedCalls& operator=(const TimedCalls&) = delete;

  // Waits for the call that is under way. Returns the seconds of each call, or the first error.
  absl::StatusOr<std::vector<double>> End();

 private:
  void Work(const TimedCall& call, absl::Duration pause);

  StopFlag end_;
  absl::Status error_;           // read after the thread has ended
  std::vector<double> seconds_;  // likewise
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_TIMED_CALLS_H_

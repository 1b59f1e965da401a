// One thread that does what it is given, in order: what is sent or saved while others compute.

#ifndef SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_
#define SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Made with its thread, which ends with it, after all it was given.
class SerialExecutor {
 public:
  SerialExecutor();
  ~SerialExecutor();

  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  // Returns at once. `task` must not throw.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when all that was given is done. Its effects are then seen by the caller.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar work_;  // there is a task, or the end
  absl::CondVar idle_;  // all that was given is done
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

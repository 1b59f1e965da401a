// A thread that runs tasks in the order in which they were given. Gradients are sent and
// checkpoints are written on such threads, while other threads compute.

#ifndef SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_
#define SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Owns its thread. The destructor waits until all tasks are done. Any thread may call Run().
class SerialExecutor {
 public:
  SerialExecutor();
  ~SerialExecutor();

  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  // Queues `task` and returns at once. `task` must not throw.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until all tasks are done. The caller then sees their effects.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar work_;  // a task was queued, or the executor ends
  absl::CondVar idle_;  // all tasks are done
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

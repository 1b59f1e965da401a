// An Executor with a fixed number of threads. Each takes the task that has waited longest.

#ifndef SLUICE_COMMON_BASE_EXECUTOR_POOL_H_
#define SLUICE_COMMON_BASE_EXECUTOR_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/executor.h"

namespace sluice {

// Owns its threads, which sleep while there is no task. The destructor waits until all tasks are
// done; it must not run on one of these threads.
class ExecutorPool final : public Executor {
 public:
  // `threads` is at least 1. `name`, of at most 15 characters, is what top and gdb call them;
  // empty: the process's.
  explicit ExecutorPool(uint32_t threads, const std::string& name = "");
  ~ExecutorPool() override;

  ExecutorPool(const ExecutorPool&) = delete;
  ExecutorPool& operator=(const ExecutorPool&) = delete;

  void Run(std::function<void()> task) override ABSL_LOCKS_EXCLUDED(mu_);
  void Drain() override ABSL_LOCKS_EXCLUDED(mu_);
  size_t tasks() const override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return tasks_.size() + busy_;
  }

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mu_);
  bool Take(std::function<void()>* task) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteDone() ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  absl::CondVar work_;  // a task was queued, or the executor ends
  absl::CondVar idle_;  // all tasks are done
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  uint32_t busy_ ABSL_GUARDED_BY(mu_) = 0;  // threads that run a task
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_EXECUTOR_POOL_H_

// An Executor whose tasks wait until a test lets them run.

#ifndef SLUICE_TESTS_TESTING_HELD_EXECUTOR_H_
#define SLUICE_TESTS_TESTING_HELD_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/executor.h"

namespace sluice {

// Between Hold() and Release() tasks wait; otherwise each runs at once, on the calling thread. Any
// thread may call any method.
class HeldExecutor final : public Executor {
 public:
  void Hold() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    holds_ = true;
  }

  // Runs the tasks that wait on the calling thread, in their order.
  void Release() ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      holds_ = false;
    }
    while (RunNext()) {
    }
  }

  void Run(std::function<void()> task) override ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (holds_) return tasks_.push_back(std::move(task));
    }
    task();
  }

  // Releases what a test holds.
  void Drain() override { Release(); }
  size_t tasks() const override { return waiting(); }

  // Runs the task that has waited longest on the calling thread. False if none waits.
  bool RunNext() ABSL_LOCKS_EXCLUDED(mu_) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mu_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }

  // How many tasks wait.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return tasks_.size();
  }

  // Blocks until so many tasks wait.
  void Await(size_t tasks) const ABSL_LOCKS_EXCLUDED(mu_) {
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return tasks_.size() >= tasks; };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&enough));
  }

 private:
  mutable absl::Mutex mu_;
  bool holds_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_HELD_EXECUTOR_H_

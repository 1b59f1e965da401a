// Runs tasks for threads that must not do them: on threads of its own, or for tests on the calling
// thread. A server gives its executors what may take long, so that gRPC's threads stay free.

#ifndef SLUICE_COMMON_BASE_EXECUTOR_H_
#define SLUICE_COMMON_BASE_EXECUTOR_H_

#include <cstddef>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Any thread may call it, also a task. A task must not throw: what it throws ends the process.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` once: on another thread, or on this one before it returns. Call it with no lock
  // held that the task needs. Waiting tasks are not limited; callers limit them, or use
  // BoundedExecutor.
  virtual void Run(std::function<void()> task) = 0;

  // Waits until all tasks are done. The caller, which is no task, then sees their effects.
  virtual void Drain() = 0;

  // How many tasks wait or run.
  virtual size_t tasks() const = 0;
};

// Runs each task on the calling thread.
class InlineExecutor final : public Executor {
 public:
  void Run(std::function<void()> task) override { task(); }
  void Drain() override {}
  size_t tasks() const override { return 0; }  // none that others must wait for
};

// Lets few tasks into another executor at a time, and refuses the others.
class BoundedExecutor {
 public:
  // `executor` outlives this, and is drained before this is destroyed. `most`: how many tasks may
  // wait or run at once.
  BoundedExecutor(Executor& executor, size_t most) : executor_(executor), most_(most) {}

  // Runs the task as Executor::Run() does, or returns false and forgets it.
  [[nodiscard]] bool TryRun(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  size_t most() const { return most_; }

 private:
  Executor& executor_;
  const size_t most_;
  absl::Mutex mu_;
  size_t tasks_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_EXECUTOR_H_

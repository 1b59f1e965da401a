// A thread that runs tasks in the order in which they were given. Gradients are sent, steps are
// made and checkpoints are written on such threads, while other threads do their own work.

#ifndef SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_
#define SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "common/base/executor.h"
#include "common/base/executor_pool.h"

namespace sluice {

// Owns its thread. The destructor waits until all tasks are done; it must not run on that thread.
class SerialExecutor final : public Executor {
 public:
  // `name` is the thread's; see ExecutorPool.
  explicit SerialExecutor(const std::string& name = "") : pool_(1, name) {}

  // Queues `task` and returns at once.
  void Run(std::function<void()> task) override { pool_.Run(std::move(task)); }
  void Drain() override { pool_.Drain(); }
  size_t tasks() const override { return pool_.tasks(); }

 private:
  ExecutorPool pool_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_SERIAL_EXECUTOR_H_

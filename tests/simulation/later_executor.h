// An Executor whose tasks wait until they are run one by one, or are lost with their process.

#ifndef SLUICE_TESTS_SIMULATION_LATER_EXECUTOR_H_
#define SLUICE_TESTS_SIMULATION_LATER_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "common/base/executor.h"

namespace sluice {

// One thread uses it. Tasks that wait at its end are never run.
class LaterExecutor final : public Executor {
 public:
  void Run(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  // Does nothing, because a process that is killed waits for no task.
  void Drain() override {}
  size_t tasks() const override { return tasks_.size(); }

  // Runs the task that has waited longest, if any.
  void RunNext() {
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
  }

  void RunAll() {
    while (!tasks_.empty()) RunNext();
  }

 private:
  std::deque<std::function<void()>> tasks_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_LATER_EXECUTOR_H_

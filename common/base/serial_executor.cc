#include "common/base/serial_executor.h"

#include <utility>

namespace sluice {

SerialExecutor::SerialExecutor() : thread_([this] { Work(); }) {}

SerialExecutor::~SerialExecutor() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    work_.Signal();
  }
  thread_.join();
}

void SerialExecutor::Run(std::function<void()> task) {
  absl::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  work_.Signal();
}

void SerialExecutor::Drain() {
  absl::MutexLock lock(&mu_);
  while (!tasks_.empty() || busy_) idle_.Wait(&mu_);
}

void SerialExecutor::Work() {
  for (;;) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mu_);
      busy_ = false;
      if (tasks_.empty()) idle_.SignalAll();
      while (!ends_ && tasks_.empty()) work_.Wait(&mu_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
    }
    task();
  }
}

}  // namespace sluice

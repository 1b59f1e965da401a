#include "common/base/executor_pool.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/thread_name.h"

namespace sluice {

ExecutorPool::ExecutorPool(uint32_t threads, const std::string& name) {
  for (uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      NameThisThread(name);
      Work();
    });
  }
}

ExecutorPool::~ExecutorPool() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    work_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    CHECK(thread.get_id() != std::this_thread::get_id()) << "a task destroys its own executor";
    thread.join();
  }
}

void ExecutorPool::Run(std::function<void()> task) {
  absl::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  work_.Signal();
}

void ExecutorPool::Drain() {
  absl::MutexLock lock(&mu_);
  while (!tasks_.empty() || busy_ > 0) idle_.Wait(&mu_);
}

void ExecutorPool::Work() {
  std::function<void()> task;
  while (Take(&task)) {
    task();
    task = nullptr;  // what it owns is gone before the executor is idle
    NoteDone();
  }
}

// Waits for a task. False at the end.
bool ExecutorPool::Take(std::function<void()>* task) {
  absl::MutexLock lock(&mu_);
  while (!ends_ && tasks_.empty()) work_.Wait(&mu_);
  if (tasks_.empty()) return false;
  *task = std::move(tasks_.front());
  tasks_.pop_front();
  ++busy_;
  return true;
}

void ExecutorPool::NoteDone() {
  absl::MutexLock lock(&mu_);
  if (--busy_ == 0 && tasks_.empty()) idle_.SignalAll();
}

}  // namespace sluice

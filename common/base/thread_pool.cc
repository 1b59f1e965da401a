#include "common/base/thread_pool.h"

#include <sched.h>

#include <atomic>

#include "common/base/thread_name.h"

namespace sluice {

// One For(), on the caller's stack. The threads that work on it are counted, and the caller returns
// only when there are none.
struct ThreadPool::Task {
  absl::FunctionRef<void(size_t)> part;
  size_t count;
  std::atomic<size_t> next{0};
  int workers = 0;  // guarded by the pool's mutex
};

uint32_t ThreadPool::UsableCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;  // more than CPU_SETSIZE
  return static_cast<uint32_t>(CPU_COUNT(&cores));
}

ThreadPool::ThreadPool(uint32_t threads) {
  for (uint32_t i = 1; i < threads; ++i) {
    threads_.emplace_back([this] {
      NameThisThread("sluice-math");
      Serve();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    work_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::For(size_t count, absl::FunctionRef<void(size_t)> part) {
  Task task{part, count};
  if (count > 1 && !threads_.empty()) {
    absl::MutexLock lock(&mu_);
    if (task_ == nullptr) {
      task_ = &task;
      work_.SignalAll();
    }
  }
  WorkOn(task);
  if (count <= 1 || threads_.empty()) return;
  absl::MutexLock lock(&mu_);
  if (task_ == &task) task_ = nullptr;
  while (task.workers > 0) done_.Wait(&mu_);
}

void ThreadPool::Serve() {
  for (;;) {
    Task* task = nullptr;
    {
      absl::MutexLock lock(&mu_);
      while (!ends_ && task_ == nullptr) work_.Wait(&mu_);
      if (ends_) return;
      task = task_;
      ++task->workers;
    }
    WorkOn(*task);
    absl::MutexLock lock(&mu_);
    // No part is left, so no other thread needs to look.
    if (task_ == task) task_ = nullptr;
    if (--task->workers == 0) done_.SignalAll();
  }
}

void ThreadPool::WorkOn(Task& task) {
  for (size_t i = task.next++; i < task.count; i = task.next++) task.part(i);
}

}  // namespace sluice

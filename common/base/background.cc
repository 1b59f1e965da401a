#include "common/base/background.h"

#include <utility>

namespace sluice {

Background::Background() : thread_([this] { Work(); }) {}

Background::~Background() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
    work_.Signal();
  }
  thread_.join();
}

void Background::Run(std::function<void()> task) {
  absl::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  work_.Signal();
}

void Background::Drain() {
  absl::MutexLock lock(&mu_);
  while (!tasks_.empty() || busy_) idle_.Wait(&mu_);
}

void Background::Work() {
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

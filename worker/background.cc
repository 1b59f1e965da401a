#include "worker/background.h"

#include <utility>

namespace sluice {

Background::Background() : thread_([this] { Work(); }) {}

Background::~Background() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
  }
  thread_.join();
}

void Background::Run(std::function<void()> task) {
  absl::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
}

void Background::Drain() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Background::IsIdle));
}

void Background::Work() {
  for (;;) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mu_);
      busy_ = false;
      mu_.Await(absl::Condition(this, &Background::HasTaskOrEnds));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
    }
    task();
  }
}

}  // namespace sluice

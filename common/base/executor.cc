#include "common/base/executor.h"

#include <utility>

namespace sluice {

bool BoundedExecutor::TryRun(std::function<void()> task) {
  {
    absl::MutexLock lock(&mu_);
    if (tasks_ == most_) return false;
    ++tasks_;
  }
  executor_.Run([this, task = std::move(task)] {
    task();
    absl::MutexLock lock(&mu_);
    --tasks_;
  });
  return true;
}

}  // namespace sluice

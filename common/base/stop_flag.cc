#include "common/base/stop_flag.h"

#include <algorithm>
#include <chrono>

namespace sluice {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 365);  // later times would overflow

}  // namespace

void StopFlag::Raise() {
  const std::lock_guard<std::mutex> lock(mu_);
  raised_ = true;
  changed_.notify_all();
}

bool StopFlag::WaitFor(absl::Duration longest) {
  const absl::Duration bounded = std::min(longest, kLongest);
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(bounded);
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_until(lock, until, [this] { return raised_; });
}

}  // namespace sluice

#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace sluice {
namespace {

absl::Duration SinceBoot() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

class MonotonicClock final : public Clock {
 public:
  absl::Time Now() const override { return boot_ + SinceBoot(); }

 private:
  const absl::Time boot_ = absl::Now() - SinceBoot();
};

}  // namespace

const Clock& RealClock() {
  static const MonotonicClock clock;
  return clock;
}

}  // namespace sluice

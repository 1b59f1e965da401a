// The counters of pushes: each one received ends in exactly one column.

#ifndef SLUICE_SERVER_STATE_PUSH_COUNTERS_H_
#define SLUICE_SERVER_STATE_PUSH_COUNTERS_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace sluice {

struct PushCounters {
  uint64_t received = 0;
  uint64_t accepted = 0;   // counted, whether or not they completed a step
  uint64_t stale = 0;      // dropped for their age
  uint64_t skipped = 0;    // left out for not being finite
  uint64_t duplicate = 0;  // answered before
  uint64_t rejected = 0;   // refused with an error
  uint64_t aborted =
      0;  // broken off before they were whole, or overtaken by the end of their session
  uint64_t in_progress = 0;

  bool Balanced() const {
    return received == accepted + stale + skipped + duplicate + rejected + aborted + in_progress;
  }
};

// How stale the gradients that counted were.
class StalenessHistogram {
 public:
  static constexpr uint64_t kLast = 32;  // of it, or more

  void Enter(uint64_t staleness) {
    ++counts_[std::min(staleness, kLast)];
    ++total_;
    sum_ += staleness;
    max_ = std::max(max_, staleness);
  }

  // By staleness, from 0 to kLast.
  const std::array<uint64_t, kLast + 1>& counts() const { return counts_; }
  double mean() const { return total_ == 0 ? 0 : static_cast<double>(sum_) / total_; }
  uint64_t max() const { return max_; }

 private:
  std::array<uint64_t, kLast + 1> counts_{};
  uint64_t total_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_PUSH_COUNTERS_H_

// Counts what became of each push. Every received push is counted in exactly one other field, so
// that the counters add up at every moment.

#ifndef SLUICE_SERVER_STATE_PUSH_COUNTERS_H_
#define SLUICE_SERVER_STATE_PUSH_COUNTERS_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace sluice {

struct PushCounters {
  uint64_t received = 0;
  uint64_t accepted = 0;     // ACCEPTED or APPLIED
  uint64_t stale = 0;        // dropped because of their staleness
  uint64_t skipped = 0;      // left out because they were not finite
  uint64_t duplicate = 0;    // answered before
  uint64_t rejected = 0;     // refused with an error
  uint64_t aborted = 0;      // the stream broke, or the session ended first
  uint64_t in_progress = 0;  // arriving or queued

  // Whether the counters add up.
  bool Balanced() const {
    return received == accepted + stale + skipped + duplicate + rejected + aborted + in_progress;
  }
};

// The staleness of the gradients that counted.
class StalenessHistogram {
 public:
  static constexpr uint64_t kLast = 32;  // its count includes all larger ones

  void Enter(uint64_t staleness) {
    ++counts_[std::min(staleness, kLast)];
    ++total_;
    sum_ += staleness;
    max_ = std::max(max_, staleness);
  }

  // The number of gradients of each staleness from 0 to kLast.
  const std::array<uint64_t, kLast + 1>& counts() const { return counts_; }
  double mean() const { return total_ == 0 ? 0 : static_cast<double>(sum_) / total_; }
  uint64_t max() const { return max_; }
  uint64_t total() const { return total_; }  // gradients
  uint64_t sum() const { return sum_; }      // of their staleness

 private:
  std::array<uint64_t, kLast + 1> counts_{};
  uint64_t total_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_PUSH_COUNTERS_H_

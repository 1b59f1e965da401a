// Which share of the latest observations was bad, by a moving average.

#ifndef SLUICE_SERVER_POLICY_BAD_SHARE_H_
#define SLUICE_SERVER_POLICY_BAD_SHARE_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

// Externally synchronized.
class BadShare {
 public:
  static constexpr double kObservations = 64;
  static constexpr double kBad = 0.9;   // trouble: 147 bad ones in a row, from 0 on
  static constexpr double kGood = 0.5;  // below it, trouble is over
  static constexpr uint64_t kSuspiciousRun = 10;

  void Add(Step step, bool bad) {
    share_ += ((bad ? 1 : 0) - share_) / kObservations;
    run_ = bad ? run_ + 1 : 0;
    if (bad && !since_.has_value()) since_ = step;
    if (!bad && over()) since_.reset();
  }
  // There is trouble, whatever the share is.
  void Confirm() { share_ = 1; }

  bool trouble() const { return share_ >= kBad; }
  bool over() const { return share_ < kGood; }
  // Whether there may be trouble soon: the latest ones were all bad, or half of them.
  bool suspicious() const { return run_ >= kSuspiciousRun || !over(); }
  // The first bad step after which bad ones were not rare again. Only if trouble().
  Step since() const { return *since_; }

 private:
  double share_ = 0;
  uint64_t run_ = 0;  // bad ones in a row
  absl::optional<Step> since_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_BAD_SHARE_H_

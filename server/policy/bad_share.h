// Which share of the latest observations was bad, by a moving average.

#ifndef SLUICE_SERVER_POLICY_BAD_SHARE_H_
#define SLUICE_SERVER_POLICY_BAD_SHARE_H_

#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

// Externally synchronized.
class BadShare {
 public:
  static constexpr double kObservations = 64;

  // There is trouble from the share `bad` on; it is over below `good`. 0.9 is reached by 147 bad
  // ones in a row: 2.3 times kObservations.
  explicit BadShare(double bad = 0.9, double good = 0.5) : bad_(bad), good_(good) {}

  // The share is averaged over `observations`.
  void Add(Step step, bool bad, double observations = kObservations) {
    share_ += ((bad ? 1 : 0) - share_) / observations;
    if (bad && !since_.has_value()) since_ = step;
    if (!bad && over()) since_.reset();
  }
  // There is trouble, whatever the share is.
  void Confirm() { share_ = 1; }

  double share() const { return share_; }
  bool trouble() const { return share_ >= bad_; }
  bool over() const { return share_ < good_; }
  // The first bad step after which bad ones were not rare again. Present if there may be trouble
  // soon: the latest one was bad, or so many that trouble would not be over.
  absl::optional<Step> since() const { return since_; }

 private:
  double bad_;
  double good_;
  double share_ = 0;
  absl::optional<Step> since_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_BAD_SHARE_H_

// Tells whether the parameters grow as only unstable training lets them: exponentially.
//
// Steps of bounded length move parameters in proportion to the number of steps, at most; with
// momentum or a warm-up, to its square or cube. So while the number of steps doubles twice, a norm
// grows by no more than 4, 16 or 64. The norm is therefore compared with the one of a quarter to
// half as many steps before. This holds for every optimizer and learning rate, after a few steps
// and after a million. Before kFirst steps it holds for no job whose parameters begin near 0, so
// nothing is judged.

#ifndef SLUICE_SERVER_POLICY_NORM_GROWTH_H_
#define SLUICE_SERVER_POLICY_NORM_GROWTH_H_

#include <algorithm>
#include <cstdint>

namespace sluice {

// Externally synchronized.
class NormGrowth {
 public:
  static constexpr double kMost = 100;  // growth beyond it is not that of bounded steps
  static constexpr uint64_t kFirst = 16;
  static constexpr uint64_t kHeld = 1000;    // steps of such growth after which it is the measure
  static constexpr double kSmallest = 1e-3;  // a smaller norm is no measure

  // Begins with the norm of the initial parameters. Where it is nearly 0, it begins with the first
  // step that changes that.
  void Begin(double norm) { initial_ = earlier_ = later_ = norm; }

  // Adds the norm after a step.
  void Add(double norm) {
    if (initial_ < kSmallest) Begin(norm);
    if (initial_ < kSmallest) return;
    if (++steps_ <= kFirst) early_ = std::max(early_, norm);
    early_growth_ = std::min(norm, early_) / initial_;
    growth_ = steps_ > kFirst && earlier_ >= kSmallest ? norm / earlier_ : 1;
    Move(norm);
  }

  // The latest norm, as a multiple of the earlier one. 1 in the first kFirst steps.
  double growth() const { return growth_; }
  // As a multiple of the initial norm, how much of the growth in the first kFirst steps is left.
  double early_growth() const { return early_growth_; }

 private:
  // While the norm is too large, it is compared with the same one, so that it does not soon become
  // the measure.
  void Move(double norm) {
    large_ = growth_ > kMost ? large_ + 1 : 0;
    if (large_ == kHeld) {
      earlier_ = later_ = norm;
      large_ = 0;
      return;
    }
    const bool doubled = (steps_ & (steps_ - 1)) == 0;
    if (!doubled || growth_ > kMost) return;
    earlier_ = later_;
    later_ = norm;
  }

  uint64_t steps_ = 0;
  uint64_t large_ = 0;  // steps in a row
  double initial_ = 0;
  double early_ = 0;    // the largest one of the first kFirst steps
  double earlier_ = 0;  // of the last power of two but one
  double later_ = 0;    // of the last power of two
  double growth_ = 1;
  double early_growth_ = 1;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_NORM_GROWTH_H_

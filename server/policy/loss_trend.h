// Follows the losses that workers report, one for each step, and tells whether they fall or rise.
//
// The server does not know the loss of guessing. It uses the losses of the first steps in its
// place: the loss that the job begins with is that of an untrained model. Everything is measured
// against it and against the best that was reached, in the manner of early stopping (Prechelt 1998,
// "Early Stopping - But When?"). So no threshold depends on the kind of loss: a loss may be large,
// small or negative. A mean is compared with a mean, so that it does not matter how losses are
// distributed. Each step costs a few additions.

#ifndef SLUICE_SERVER_POLICY_LOSS_TREND_H_
#define SLUICE_SERVER_POLICY_LOSS_TREND_H_

#include <cstddef>
#include <vector>

#include "absl/types/optional.h"

namespace sluice {

// What is known of a job's losses. A checkpoint has it, so that a server that continues from there
// judges by the same beginning. All numbers are finite; margin and slack are not negative.
struct LossMemory {
  double very_first = 0;
  double first = 0;      // see LossTrend::first()
  double margin = 0;     // a loss that has fallen is so much lower
  double slack = 0;      // a loss that has risen is so much higher
  double smoothed = 0;   // see LossTrend::smoothed()
  double best = 0;       // its lowest value
  bool trained = false;  // the model was trained before the first loss, which says nothing then
};

// Externally synchronized. All losses are finite.
class LossTrend {
 public:
  static constexpr size_t kFirst = 64;        // losses that are those of the beginning
  static constexpr size_t kVeryFirst = 5;     // of these, those that may be high before the others
  static constexpr double kSmoothing = 64;    // steps over which losses are averaged
  static constexpr double kLeastFall = 0.03;  // of the first loss; less says nothing
  static constexpr double kLeastRise = 0.1;   // as above
  static constexpr double kMuch = 0.5;        // a fall or a rise, of the very first loss
  // One loss counts as no lower than this multiple of a certain rise below the average.
  static constexpr double kMostDrop = 8;

  void Add(double loss);

  // Continues from memory().
  void Restore(const LossMemory& memory);
  // Absent until known().
  absl::optional<LossMemory> memory() const;

  // Whether losses are judged: one of them was not 0. A job whose losses are 0 at first has no
  // measure; its first losses are those from the first other one on.
  bool begun() const { return known_ || !first_losses_.empty(); }
  // Whether kFirst losses were added since. Before, only improved() and worsened() may be true.
  bool known() const { return known_; }

  // The loss of the beginning: the mean of the first ones. Where the first kVeryFirst losses are
  // above it, because the job learns at once, their median or the very first, whichever is lower,
  // so that no single loss decides: one may be high by chance, or as the optimizer begins.
  double first() const { return memory_.first; }
  double latest() const { return latest_; }
  // A moving average. Losses that are far above the first, or far below the average, count as being
  // a little above or below it, so that a few of them do not hide what the others are.
  double smoothed() const { return memory_.smoothed; }
  double best() const { return memory_.best; }  // its lowest value

  // Whether the latest loss is below the very first.
  bool improved() const { return begun() && latest_ < memory_.very_first; }
  // Whether it is above it by half.
  bool worsened() const;
  // Whether the smoothed loss is clearly below the first: by 3 %, and by more than chance explains.
  // Or it is below the very first by half: such a job may have learned in its first steps.
  bool has_fallen() const { return known() && memory_.smoothed < Fallen(); }
  // Whether it ever was.
  bool had_fallen() const { return known() && memory_.best < Fallen(); }
  // Whether the latest loss is far above what was reached: where the loss had fallen, half of its
  // fall is lost; where it had not, it is above the first loss. In both cases by a tenth of the
  // first loss, and by more than one batch differs from another.
  bool rises() const { return known() && latest_ > Limit(); }

 private:
  void Learn();
  double Fallen() const;
  double Limit() const;

  std::vector<double> first_losses_;  // until known()
  bool known_ = false;
  LossMemory memory_;
  double latest_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_LOSS_TREND_H_

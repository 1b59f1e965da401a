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

namespace sluice {

// Externally synchronized. All losses are finite.
class LossTrend {
 public:
  static constexpr size_t kFirst = 64;        // losses that are those of the beginning
  static constexpr double kSmoothing = 64;    // steps over which losses are averaged
  static constexpr double kLeastFall = 0.03;  // of the first loss; less says nothing
  static constexpr double kLeastRise = 0.1;   // as above
  static constexpr double kMuchRise = 0.5;    // as above, of the very first loss
  // One loss counts as no lower than this multiple of a certain rise below the average.
  static constexpr double kMostDrop = 8;

  void Add(double loss);

  // Whether losses are judged: one of them was not 0. A job whose losses are 0 at first has no
  // measure; its first losses are those from the first other one on.
  bool begun() const { return !first_losses_.empty(); }
  // Whether kFirst losses were added since. Before, only improved() and worsened() may be true.
  bool known() const { return first_losses_.size() == kFirst; }

  // The loss of the beginning: the very first loss, or the mean of the first ones, whichever is
  // larger. (A job that learns at once has a lower mean, and the first loss may be a lucky one.)
  double first() const { return first_; }
  double latest() const { return latest_; }
  // A moving average. Losses that are far above the first, or far below the average, count as being
  // a little above or below it, so that a few of them do not hide what the others are.
  double smoothed() const { return smoothed_; }
  double best() const { return best_; }  // its lowest value

  // Whether the latest loss is below the very first.
  bool improved() const { return begun() && latest_ < first_losses_.front(); }
  // Whether it is above it by half.
  bool worsened() const;
  // Whether the smoothed loss is clearly below the first: by 3 %, and by more than chance explains.
  bool has_fallen() const { return known() && smoothed_ < first_ - margin_; }
  // Whether it ever was.
  bool had_fallen() const { return known() && best_ < first_ - margin_; }
  // Whether the latest loss is far above what was reached: where the loss had fallen, half of its
  // fall is lost; where it had not, it is above the first loss. In both cases by a tenth of the
  // first loss, and by more than one batch differs from another.
  bool rises() const { return known() && latest_ > Limit(); }

 private:
  void Learn();
  double Limit() const;

  std::vector<double> first_losses_;
  double first_ = 0;
  double margin_ = 0;
  double slack_ = 0;
  double latest_ = 0;
  double smoothed_ = 0;
  double best_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_POLICY_LOSS_TREND_H_

#include "worker/training/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/time_text.h"

namespace sluice {
namespace {

constexpr absl::Duration kTerminalInterval = absl::Milliseconds(200);
constexpr absl::Duration kPlainInterval = absl::Seconds(5);

}  // namespace

Progress::Progress(std::ostream& out, bool terminal, const Clock& clock, std::string unit)
    : out_(out),
      terminal_(terminal),
      clock_(clock),
      unit_(std::move(unit)),
      written_(clock.Now()) {}

void Progress::Note(const TrainedBatch& batch) {
  samples_ += batch.samples;
  ++batches_;
  loss_sum_ += batch.report.loss;
  max_staleness_ = std::max(max_staleness_, batch.report.staleness);
  epoch_ = batch.epoch;
  step_ = batch.report.step;
  left_ = batch.left.value_or(0);
  const absl::Time now = clock_.Now();
  NotePace(now, batch);
  if (now - written_ >= (terminal_ ? kTerminalInterval : kPlainInterval)) Write(now);
}

void Progress::Finish() {
  if (batches_ > 0) Write(clock_.Now());
  if (terminal_ && line_open_) out_ << std::endl;
  line_open_ = false;
}

absl::optional<Pace> Progress::pace() const {
  if (!first_.has_value() || last_ == *first_) return absl::nullopt;
  const absl::Duration time = last_ - *first_;
  return Pace{static_cast<double>(pace_samples_) / absl::ToDoubleSeconds(time),
              absl::FDivDuration(pace_exchange_, time)};
}

void Progress::NotePace(absl::Time now, const TrainedBatch& batch) {
  last_ = now;
  if (!first_.has_value()) {
    first_ = now;
    return;
  }
  ++pace_batches_;
  pace_samples_ += batch.samples;
  pace_exchange_ += batch.report.exchange;
}

// Supposes that the rest is as fast as the batches of the pace.
std::string Progress::TimeLeft() const {
  if (left_ == 0 || pace_batches_ == 0) return "";
  return absl::StrCat("  ", WholeTimeText((last_ - *first_) * left_ / pace_batches_), " left");
}

void Progress::Write(absl::Time now) {
  const double seconds = std::max(absl::ToDoubleSeconds(now - written_), 1e-9);
  out_ << (terminal_ ? "\r\033[K" : "")
       << absl::StrFormat("epoch %d  step %d  loss %.4f  %.0f %s/s  staleness %d", epoch_ + 1,
                          step_.value(), loss_sum_ / static_cast<double>(batches_),
                          static_cast<double>(samples_) / seconds, unit_, max_staleness_)
       << TimeLeft() << (terminal_ ? "" : "\n") << std::flush;
  line_open_ = true;
  written_ = now;
  samples_ = batches_ = 0;
  loss_sum_ = 0;
  max_staleness_ = 0;
}

}  // namespace sluice

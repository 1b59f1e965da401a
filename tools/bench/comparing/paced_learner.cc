#include "tools/bench/comparing/paced_learner.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/clock.h"

namespace sluice::bench {
namespace {

// A vote costs an allreduce of one number, so the ranks of a group vote rarely.
constexpr int64_t kBatchesBetweenVotes = 8;

absl::Duration CpuOfThisProcess() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

// Whether it is true on some rank.
bool IsTrueSomewhere(bool here, GradientGroup& group) {
  torch::Tensor votes = torch::full({1}, here ? 1.0F : 0.0F);
  group.Sum(votes);
  return votes.item<float>() > 0;
}

}  // namespace

PacedLearner::PacedLearner(std::unique_ptr<Learner> learner, const PaceOptions& options,
                           GradientGroup* group)
    : learner_(std::move(learner)),
      options_(options),
      group_(group),
      times_(options.times, learner_->place().workers, options.seed) {}

absl::StatusOr<LearnReport> PacedLearner::Learn(Batch batch) {
  if (batches_ == 0) {
    began_ = RealClock().Now();
    cpu_before_ = CpuOfThisProcess();
  }
  if (!MayGoOn()) return absl::CancelledError("the time of the run is over");
  const Place here = place();
  absl::SleepFor(options_.batch * times_.Next(here.index % here.workers) - computed_);
  const absl::Time begin = RealClock().Now();
  auto report = learner_->Learn(std::move(batch));
  if (!report.ok()) return report;
  computed_ = RealClock().Now() - begin - report->exchange;
  exchange_ += report->exchange;
  ++batches_;
  return report;
}

bool PacedLearner::MayGoOn() {
  const bool late = elapsed() >= options_.limit;
  if (group_ == nullptr) return !late;
  return batches_ % kBatchesBetweenVotes != 0 || !IsTrueSomewhere(late, *group_);
}

PacedUsage PacedLearner::usage() const {
  return {elapsed(), CpuOfThisProcess() - cpu_before_, exchange_, batches_};
}

absl::Duration PacedLearner::elapsed() const {
  return std::max(absl::ZeroDuration(), RealClock().Now() - began_);
}

}  // namespace sluice::bench

#include "server/step_maker.h"

#include <algorithm>
#include <cmath>

#include "server/vector_math.h"

namespace sluice {
namespace {

// Elements between two words of progress: 1 MiB.
constexpr uint64_t kPart = uint64_t{1} << 18;
// As torch::nn::utils::clip_grad_norm_ has it.
constexpr double kClipEpsilon = 1e-6;

double NormOf(const std::vector<KindRun>& runs, absl::Span<const float> values) {
  double squares = 0;
  for (const KindRun& run : runs) {
    if (run.kind != RangeKind::kParameter) continue;
    squares += SumOfSquares(values.subspan(run.begin, run.end - run.begin));
  }
  return std::sqrt(squares);
}

GradientWeight WeightOf(uint32_t samples, uint64_t staleness, const Consistency& consistency) {
  GradientWeight weight;
  if (consistency.reduction == Reduction::kWeightedMean) {
    weight.parameters = weight.statistics = static_cast<float>(samples);
  }
  // A discounted statistic would be a smaller value, not a smaller change.
  if (consistency.discount_stale) weight.parameters /= static_cast<float>(1 + staleness);
  return weight;
}

}  // namespace

StepMaker::StepMaker(const Layout& layout, const OptimizerOptions& options,
                     absl::optional<double> clip_norm)
    : runs_(layout.Runs()),
      clip_norm_(clip_norm),
      accumulator_(layout),
      optimizer_(MakeOptimizer(options, layout.size())) {}

void StepMaker::Add(const PendingPush& push, uint64_t staleness, const Consistency& consistency) {
  accumulator_.Add(push.gradient(), WeightOf(push.header().samples, staleness, consistency));
  samples_ += push.header().samples;
}

void StepMaker::Make(Reduction reduction, double learning_rate, absl::Span<const float> current,
                     absl::Span<float> next, const WriteProgress& progress) {
  if (accumulator_.count() == 0) {
    CopyTo(current, next);
    return;
  }
  const Divisors divisors = DivisorsOf(reduction);
  OptimizerStep step;
  step.divisor = divisors.parameters;
  step.learning_rate = static_cast<float>(learning_rate);
  step.first = first_;
  if (clip_norm_.has_value()) {
    const double norm = NormOf(runs_, accumulator_.sum()) / divisors.parameters;
    const double share = *clip_norm_ / (norm + kClipEpsilon);
    if (share < 1) step.divisor = static_cast<float>(divisors.parameters / share);
  }
  for (uint64_t begin = 0; begin < next.size(); begin += kPart) {
    const uint64_t end = std::min<uint64_t>(begin + kPart, next.size());
    MakePart(step, divisors.statistics, begin, end, current, next);
    if (progress) progress(end);
  }
  accumulator_.Clear();
  samples_ = 0;
  first_ = false;
}

StepMaker::Divisors StepMaker::DivisorsOf(Reduction reduction) const {
  const auto count = static_cast<float>(accumulator_.count());
  switch (reduction) {
    case Reduction::kWeightedMean:
      return {static_cast<float>(samples_), static_cast<float>(samples_)};
    case Reduction::kSum:
      return {1, count};
    case Reduction::kMean:
      break;
  }
  return {count, count};
}

void StepMaker::MakePart(const OptimizerStep& step, float statistics_divisor, uint64_t begin,
                         uint64_t end, absl::Span<const float> current, absl::Span<float> next) {
  const absl::Span<const float> sum = accumulator_.sum();
  ForEachRun(runs_, begin, end, [&](RangeKind kind, uint64_t from, uint64_t to) {
    const size_t size = to - from;
    if (kind == RangeKind::kParameter) {
      optimizer_->Apply(step, from, sum.subspan(from, size), current.subspan(from, size),
                        next.subspan(from, size));
    } else {
      DivideTo(sum.subspan(from, size), statistics_divisor, next.subspan(from, size));
    }
  });
}

}  // namespace sluice

#include "server/aggregation/step_executor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// Parts between two calls of WriteProgress.
constexpr uint64_t kPartsPerReport = 4;
// Elements that the optimizer gets at once. They stay in the first-level cache between the addition
// of the last gradient, the optimizer, and the write.
constexpr uint64_t kPiece = 2048;
// The constant of torch::nn::utils::clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

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

StepExecutor::StepExecutor(const Layout& layout, const OptimizerConfig& optimizer,
                           absl::optional<double> clip_norm, Parallel& parallel)
    : runs_(layout.Runs()),
      group_runs_(Joined(RangeRuns(layout, optimizer))),
      clip_norm_(clip_norm),
      parallel_(parallel),
      accumulator_(layout),
      optimizer_(MakeOptimizer(optimizer, layout.size())) {
  const bool scales = std::holds_alternative<LambOptions>(optimizer.options);
  if (scales) trust_.emplace(RangeRuns(layout, optimizer));
}

void StepExecutor::Add(const Contribution& contribution, const Consistency& consistency) {
  accumulator_.Add(Count(contribution, consistency), parallel_);
}

void StepExecutor::Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum) {
  count_ = gradients;
  samples_ = samples;
  if (gradients > 0) accumulator_.Load(sum, parallel_);
}

Addend StepExecutor::Count(const Contribution& contribution, const Consistency& consistency) {
  const uint32_t samples = contribution.push->header().samples;
  samples_ += samples;
  ++count_;
  return {&contribution.push->gradient(), WeightOf(samples, contribution.staleness, consistency)};
}

void StepExecutor::Make(const Consistency& consistency, const std::vector<double>& learning_rates,
                        const Contribution* last, absl::Span<const float> current,
                        absl::Span<float> next, const WriteProgress& progress) {
  // The norm is known only after the last gradient is in the sum.
  if (last != nullptr && clip_norm_.has_value()) {
    Add(*last, consistency);
    last = nullptr;
  }
  absl::optional<Addend> addend;
  if (last != nullptr) addend = Count(*last, consistency);
  if (count_ == 0) {
    CopyTo(AsPiece(current), next);
    return;
  }
  const Divisors divisors = DivisorsOf(consistency.reduction);
  Making making;
  making.last = addend;
  making.statistics_divisor = divisors.statistics;
  making.current = current;
  making.next = next;
  OptimizerStep step;
  step.number = ++optimizer_steps_;
  step.divisor = Clipped(divisors.parameters);
  step.learning_rates = learning_rates;
  optimizer_->Begin(step);
  ForEachPartOf(next.size(), trust_.has_value() ? nullptr : progress,
                [&](uint64_t begin, uint64_t end) { MakePart(making, begin, end); });
  if (trust_.has_value()) {
    trust_->Measure(current, next, learning_rates, parallel_);
    ForEachPartOf(next.size(), progress,
                  [&](uint64_t begin, uint64_t end) { trust_->Apply(begin, end, current, next); });
  }
  accumulator_.Clear();
  count_ = 0;
  samples_ = 0;
}

StepExecutor::Divisors StepExecutor::DivisorsOf(Reduction reduction) const {
  const auto count = static_cast<float>(count_);
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

// Returns a divisor that keeps the gradient's norm within its bound.
float StepExecutor::Clipped(float divisor) const {
  if (!clip_norm_.has_value()) return divisor;
  const double share = *clip_norm_ / (Norm() / divisor + kClipEpsilon);
  return share < 1 ? static_cast<float>(divisor / share) : divisor;
}

// The norm of the sum over all parameters. Parts are fixed and their partial sums are added in
// order, so that the result does not depend on the number of threads.
double StepExecutor::Norm() const {
  const absl::Span<const float> sum = accumulator_.sum();
  std::vector<double> squares(PartsOf(sum.size()));
  ForParts(parallel_, sum.size(), [&](size_t part, uint64_t begin, uint64_t end) {
    ForEachRun(runs_, begin, end, [&](RangeKind kind, uint64_t from, uint64_t to) {
      if (kind != RangeKind::kParameter) return;
      squares[part] += SumOfSquares(AsPiece(sum.subspan(from, to - from)));
    });
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void StepExecutor::ForEachPartOf(uint64_t size, const WriteProgress& progress,
                                 absl::FunctionRef<void(uint64_t begin, uint64_t end)> part) {
  const uint64_t report = progress ? kPartsPerReport * kPartElements : size;
  for (uint64_t begin = 0; begin < size; begin += report) {
    const uint64_t end = std::min(size, begin + report);
    ForParts(parallel_, end - begin,
             [&](size_t, uint64_t from, uint64_t to) { part(begin + from, begin + to); });
    if (progress) progress(end);
  }
}

void StepExecutor::MakePart(const Making& making, uint64_t begin, uint64_t end) {
  const bool streams = making.next.size() >= kStreamedElements;
  alignas(64) float last_sum[kPiece];
  alignas(64) float made[kPiece];
  for (; begin < end; begin += kPiece) {
    const uint64_t size = std::min(kPiece, end - begin);
    absl::Span<const float> sum = accumulator_.sum().subspan(begin, size);
    if (making.last.has_value()) {
      accumulator_.SumWith(*making.last, begin, absl::MakeSpan(last_sum, size));
      sum = absl::MakeConstSpan(last_sum, size);
    }
    const absl::Span<float> next = making.next.subspan(begin, size);
    MakePiece(making, begin, sum, streams ? absl::MakeSpan(made, size) : next);
    if (streams) StreamTo(AsPiece(absl::MakeConstSpan(made, size)), next);
  }
  EndStreams();
}

void StepExecutor::MakePiece(const Making& making, uint64_t begin, absl::Span<const float> sum,
                             absl::Span<float> next) {
  const uint64_t end = begin + sum.size();
  ForEachPart(group_runs_, begin, end, [&](const GroupRun& run, uint64_t from, uint64_t to) {
    const size_t size = to - from;
    const absl::Span<const float> part = sum.subspan(from - begin, size);
    const absl::Span<float> made = next.subspan(from - begin, size);
    if (run.kind == RangeKind::kParameter) {
      optimizer_->Apply({run.group, from, part, making.current.subspan(from, size), made});
    } else {
      DivideTo(part, making.statistics_divisor, made);
    }
  });
}

}  // namespace sluice

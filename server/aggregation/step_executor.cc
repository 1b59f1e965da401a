#include "server/aggregation/step_executor.h"

#include <cmath>
#include <numeric>

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// The constant of torch::nn::utils::clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

}  // namespace

StepExecutor::StepExecutor(const Layout& layout, const OptimizerConfig& optimizer,
                           Parallel& parallel)
    : runs_(layout.Runs()),
      parallel_(parallel),
      accumulator_(layout),
      optimizer_(layout, optimizer, parallel),
      ages_(ParameterSample(layout), std::holds_alternative<SgdOptions>(optimizer.options)),
      norms_(ParameterSample(layout)) {}

void StepExecutor::Add(const Contribution& contribution, const StepTerms& terms) {
  accumulator_.Add(Count(contribution, terms), parallel_);
}

void StepExecutor::Load(uint32_t gradients, uint64_t samples, absl::Span<const float> sum) {
  count_ = gradients;
  samples_ = samples;
  if (gradients > 0) accumulator_.Load(sum, parallel_);
}

Addend StepExecutor::Count(const Contribution& contribution, const StepTerms& terms) {
  const uint32_t samples = contribution.push->header().samples;
  const uint64_t staleness = contribution.staleness;
  samples_ += samples;
  ++count_;
  GradientWeight weight;
  if (terms.consistency.reduction == Reduction::kWeightedMean) {
    weight.parameters = weight.statistics = static_cast<float>(samples);
  }
  // A discounted statistic would be a smaller value, not a smaller change.
  if (terms.consistency.discount_stale) weight.parameters /= static_cast<float>(1 + staleness);
  weight.parameters /= static_cast<float>(ages_.Count(staleness, terms));
  return {&contribution.push->gradient(), weight};
}

absl::optional<uint64_t> StepExecutor::Make(const StepTerms& terms, const Contribution* last,
                                            absl::Span<const float> current, absl::Span<float> next,
                                            const WriteProgress& progress, uint64_t* checksum) {
  ages_.BeginStep(terms, current);
  const absl::optional<uint64_t> bad = MakeStep(terms, last, current, next, progress, checksum);
  const absl::Span<const float> made = bad.has_value() ? current : next;
  ages_.EndStep(terms, made);
  norms_.Note(current, made);
  return bad;
}

absl::optional<uint64_t> StepExecutor::MakeStep(const StepTerms& terms, const Contribution* last,
                                                absl::Span<const float> current,
                                                absl::Span<float> next,
                                                const WriteProgress& progress, uint64_t* checksum) {
  if (checksum != nullptr) *checksum = 0;
  // The norm is known only after the last gradient is in the sum.
  if (last != nullptr && terms.clip_norm.has_value()) {
    Add(*last, terms);
    last = nullptr;
  }
  VectorStep step;
  if (last != nullptr) step.last = Count(*last, terms);
  terms_ = terms;
  if (count_ == 0) {
    CopyTo(AsPiece(current), next);
    return absl::nullopt;
  }
  ages_.Complete(terms_);
  const Divisors divisors = DivisorsOf(terms.consistency.reduction);
  step.optimizer.divisor = Clipped(divisors.parameters, terms.clip_norm);
  step.optimizer.learning_rates = terms_.learning_rates;
  step.optimizer.ordered = terms_.ordered;
  step.statistics_divisor = divisors.statistics;
  step.current = current;
  step.next = next;
  const auto bad = optimizer_.Make(step, accumulator_, progress, checksum);
  if (!bad.has_value()) ages_.NoteMade(terms_, count_);
  return bad;
}

void StepExecutor::Clear() {
  accumulator_.Clear();
  count_ = 0;
  samples_ = 0;
  ages_.Clear();
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
float StepExecutor::Clipped(float divisor, const absl::optional<double>& clip_norm) const {
  if (!clip_norm.has_value()) return divisor;
  const double share = *clip_norm / (Norm() / divisor + kClipEpsilon);
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

}  // namespace sluice

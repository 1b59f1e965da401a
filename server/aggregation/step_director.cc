#include "server/aggregation/step_director.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// The constant of torch::nn::utils::clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;
// A gradient that is divided by more is 0, and a larger divisor may be none of float32.
constexpr double kMostDivisor = 1e30;

absl::optional<BadNumber> FirstBad(const std::vector<StripeReport>& reports) {
  absl::optional<uint64_t> first;
  absl::optional<BadRow> first_row;
  for (const StripeReport& report : reports) {
    if (!report.failure.ok()) return BadNumber{0, absl::nullopt, report.failure};
    if (report.bad.has_value()) first = std::min(first.value_or(*report.bad), *report.bad);
    if (report.bad_row.has_value()) {
      first_row = std::min(first_row.value_or(*report.bad_row), *report.bad_row);
    }
  }
  if (first.has_value()) return BadNumber{*first, absl::nullopt, absl::OkStatus()};
  if (first_row.has_value()) return BadNumber{0, first_row, absl::OkStatus()};
  return absl::nullopt;
}

// What each report has in `member`.
template <typename Values>
std::vector<Values> Collect(const std::vector<StripeReport>& reports,
                            Values StripeReport::*member) {
  std::vector<Values> all;
  all.reserve(reports.size());
  for (const StripeReport& report : reports) all.push_back(report.*member);
  return all;
}

double NormOf(const std::vector<float>& sample) { return std::sqrt(SumOfSquares(AsPiece(sample))); }

}  // namespace

StepDirector::StepDirector(const Layout& layout, const OptimizerConfig& optimizer,
                           const Stripes& stripes)
    : stripes_(stripes),
      tables_(layout.tables().size()),
      scales_(std::holds_alternative<LambOptions>(optimizer.options)),
      ranges_(scales_ ? RangeRuns(layout, optimizer) : std::vector<GroupRun>()),
      sampled_(layout, stripes),
      ages_(std::holds_alternative<SgdOptions>(optimizer.options)) {}

// ---- Gradients ----

GradientWeight StepDirector::Count(const PushHeader& header, uint64_t staleness,
                                   const StepTerms& terms) {
  samples_ += header.samples;
  ++count_;
  GradientWeight weight;
  if (terms.consistency.reduction == Reduction::kWeightedMean) {
    weight.parameters = weight.statistics = weight.share = static_cast<float>(header.samples);
  }
  // A discounted statistic would be a smaller value, not a smaller change.
  if (terms.consistency.discount_stale) weight.parameters /= static_cast<float>(1 + staleness);
  weight.parameters /= static_cast<float>(ages_.Count(staleness, terms));
  if (header.running_means != nullptr) {
    running_means_.Add(*header.running_means, weight.statistics);
  }
  return weight;
}

void StepDirector::Load(uint32_t gradients, uint64_t samples) {
  count_ = gradients;
  samples_ = samples;
}

void StepDirector::Clear() {
  count_ = 0;
  samples_ = 0;
  ages_.Clear();
  running_means_.Clear();
}

// ---- Orders ----

absl::optional<BadNumber> StepDirector::Make(const StepTerms& terms, CarryOrder carry) {
  absl::optional<StepOrder> order = Begin(terms);
  while (order.has_value()) {
    const std::vector<StripeReport> reports = carry(*order);
    if (reports.empty()) return absl::nullopt;
    order = Next(reports);
  }
  return bad_;
}

absl::optional<uint32_t> StepDirector::Digest(CarryOrder carry) const {
  StepOrder order;
  order.kind = StepOrder::Kind::kDigest;
  const std::vector<StripeReport> reports = carry(order);
  if (reports.empty()) return absl::nullopt;
  uLong crc = 0;
  for (uint64_t unit = 0; unit < stripes_.units(); ++unit) {
    const uint64_t begin = unit * stripes_.unit();
    const uint64_t size = std::min(stripes_.unit(), stripes_.size() - begin);
    const uint32_t digest = reports[unit % stripes_.count()].digests[unit / stripes_.count()];
    crc = crc32_combine(crc, digest, static_cast<z_off_t>(size * sizeof(float)));
  }
  return static_cast<uint32_t>(crc);
}

StepOrder StepDirector::Begin(const StepTerms& terms) {
  terms_ = terms;
  bad_.reset();
  return has_sample_ ? Start() : Give(StepOrder::Kind::kSample);
}

absl::optional<StepOrder> StepDirector::Next(const std::vector<StripeReport>& reports) {
  if (!bad_.has_value()) {
    bad_ = FirstBad(reports);
    if (bad_.has_value()) return Give(StepOrder::Kind::kCopy);
  }
  switch (order_.kind) {
    case StepOrder::Kind::kSample:
      TakeSample(reports);
      return Start();
    case StepOrder::Kind::kMeasureSum:
      return Prepare(Clipped(reports));
    case StepOrder::Kind::kPrepare:
      return scales_ ? Scale(reports) : Give(StepOrder::Kind::kMake);
    case StepOrder::Kind::kScale:
      return Give(StepOrder::Kind::kMake);
    case StepOrder::Kind::kMake:
      ages_.NoteMade(terms_, count_);
      break;
    case StepOrder::Kind::kCopy:
    case StepOrder::Kind::kDigest:  // is no order of a step
      break;
  }
  TakeSample(reports);
  ages_.EndStep(terms_, sample_);
  return absl::nullopt;
}

StepOrder StepDirector::Give(StepOrder::Kind kind) {
  order_ = StepOrder();
  order_.kind = kind;
  order_.inconsistent_reads =
      kind == StepOrder::Kind::kMake && terms_.consistency.inconsistent_reads;
  return order_;
}

StepOrder StepDirector::Start() {
  norms_.before = norms_.after;
  ages_.BeginStep(terms_, sample_);
  if (count_ == 0) return Give(StepOrder::Kind::kCopy);
  if (!terms_.clip_norm.has_value()) return Prepare(ReductionDivisors().parameters);
  StepOrder order = Give(StepOrder::Kind::kMeasureSum);
  order.optimizer.divisor = ReductionDivisors().parameters;
  order.row_scale = RowScale(order.optimizer.divisor);
  return order;
}

StepOrder StepDirector::Prepare(float divisor) {
  ages_.Complete(terms_);
  const float statistics_divisor = ReductionDivisors().statistics;
  if (!running_means_.empty()) terms_.running_means = running_means_.Get(statistics_divisor);
  StepOrder order = Give(StepOrder::Kind::kPrepare);
  order.optimizer.divisor = divisor;
  order.optimizer.learning_rates = terms_.learning_rates;
  order.optimizer.changed = terms_.changed;
  order.optimizer.ordered = terms_.ordered;
  order.optimizer.momentum_divisor = terms_.momentum_divisor;
  order.statistics_divisor = statistics_divisor;
  order.running_means = terms_.running_means;
  order.row_scale = RowScale(divisor);
  return order;
}

StepOrder StepDirector::Scale(const std::vector<StripeReport>& reports) {
  StepOrder order = Give(StepOrder::Kind::kScale);
  order.trust = ComputeTrustRates(ranges_, stripes_, terms_.learning_rates,
                                  Collect(reports, &StripeReport::updates));
  return order;
}

// ---- Numbers ----

StepDirector::Divisors StepDirector::ReductionDivisors() const {
  const auto count = static_cast<float>(count_);
  switch (terms_.consistency.reduction) {
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
float StepDirector::Clipped(const std::vector<StripeReport>& reports) const {
  const float divisor = ReductionDivisors().parameters;
  const double share = *terms_.clip_norm / (SumNorm(reports) / divisor + kClipEpsilon);
  return share < 1 ? static_cast<float>(std::min(divisor / share, kMostDivisor)) : divisor;
}

// The norm of the sum over all parameters, added in the order of the units.
double StepDirector::SumNorm(const std::vector<StripeReport>& reports) const {
  double squares = 0;
  for (uint64_t unit = 0; unit < stripes_.units(); ++unit) {
    squares += reports[unit % stripes_.count()].squares[unit / stripes_.count()];
  }
  return std::sqrt(squares + SquaresOfRows(reports));
}

// Added in the order of tables and buckets.
double StepDirector::SquaresOfRows(const std::vector<StripeReport>& reports) const {
  double squares = 0;
  for (size_t table = 0; table < tables_; ++table) {
    for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
      const std::vector<double>& held = reports[bucket % stripes_.count()].row_squares;
      squares += held[held.size() / tables_ * table + bucket / stripes_.count()];
    }
  }
  return squares;
}

// Clipping makes the divisor larger than that of the reduction; the rows' own become so, too.
absl::optional<float> StepDirector::RowScale(float divisor) const {
  if (terms_.consistency.reduction == Reduction::kSum) return absl::nullopt;
  return divisor / ReductionDivisors().parameters;
}

void StepDirector::TakeSample(const std::vector<StripeReport>& reports) {
  sample_ = sampled_.Join(Collect(reports, &StripeReport::sample));
  has_sample_ = true;
  norms_.after = NormOf(sample_);
}

}  // namespace sluice

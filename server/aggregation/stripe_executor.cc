#include "server/aggregation/stripe_executor.h"

#include <zlib.h>

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// The indexes of the ranges that have elements in the stripe.
std::vector<size_t> RangeIndexes(const Layout& layout, const Stripes& stripes, uint32_t stripe) {
  std::vector<size_t> indexes;
  for (size_t i = 0; i < layout.ranges().size(); ++i) {
    const LayoutRange& range = layout.ranges()[i];
    const bool here = stripes.Before(stripe, range.offset) < stripes.Before(stripe, range.end());
    if (here) indexes.push_back(i);
  }
  return indexes;
}

}  // namespace

StripeExecutor::StripeExecutor(const Layout& layout, const OptimizerConfig& optimizer,
                               const Stripes& stripes, uint32_t stripe, Parallel& parallel,
                               std::unique_ptr<ProgramOptimizer> program)
    : stripes_(stripes),
      stripe_(stripe),
      layout_(layout.OfStripe(stripes, stripe)),
      runs_(layout_.Runs()),
      range_indexes_(RangeIndexes(layout, stripes, stripe)),
      sample_(layout, stripes),
      parallel_(parallel),
      sum_(layout_),
      optimizer_(layout_, stripes.unit(), optimizer, sum_, parallel, std::move(program)) {}

StripeReport StripeExecutor::Carry(const StepOrder& order, const StepVectors& vectors) {
  StripeReport report;
  SumInto(vectors.next);
  switch (order.kind) {
    case StepOrder::Kind::kSample:
      report.sample = sample_.Read(stripe_, vectors.current);
      return report;
    case StepOrder::Kind::kMeasureSum:
      report.squares = MeasureSum();
      return report;
    case StepOrder::Kind::kPrepare:
      return Prepare(order, vectors);
    case StepOrder::Kind::kScale:
      optimizer_.SetRates(OfStripe(order.trust));
      report.bad = InVector(optimizer_.Foresee());
      return report;
    case StepOrder::Kind::kMake:
      optimizer_.Make(vectors.progress, vectors.checksum);
      break;
    case StepOrder::Kind::kCopy:
      CopyTo(AsPiece(vectors.current), vectors.next);
      break;
    case StepOrder::Kind::kDigest:
      report.digests = Digest(vectors.current);
      return report;
  }
  report.sample = sample_.Read(stripe_, vectors.next);
  return report;
}

// No unit lies in two parts.
std::vector<uint32_t> StripeExecutor::Digest(absl::Span<const float> current) const {
  const uint64_t unit = stripes_.unit();
  std::vector<uint32_t> digests((current.size() + unit - 1) / unit);
  ForParts(parallel_, current.size(), [&](size_t, uint64_t part_begin, uint64_t part_end) {
    ForEachUnit(unit, part_begin, part_end, [&](uint64_t begin, uint64_t end) {
      const auto* const bytes = reinterpret_cast<const Bytef*>(current.data() + begin);
      const uLong crc = crc32_z(0, bytes, (end - begin) * sizeof(float));
      digests[begin / unit] = static_cast<uint32_t>(crc);
    });
  });
  return digests;
}

// The norm is known only when the last gradient is in the sum.
std::vector<double> StripeExecutor::MeasureSum() {
  if (last_.has_value()) Add(*last_);
  last_.reset();
  const uint64_t unit = stripes_.unit();
  const absl::Span<const float> sum = sum_.sum();
  std::vector<double> squares((sum.size() + unit - 1) / unit);
  ForParts(parallel_, sum.size(), [&](size_t, uint64_t part_begin, uint64_t part_end) {
    ForEachUnit(unit, part_begin, part_end, [&](uint64_t begin, uint64_t end) {
      ForEachRun(runs_, begin, end, [&](RangeKind kind, uint64_t from, uint64_t to) {
        if (kind != RangeKind::kParameter) return;
        squares[begin / unit] += SumOfSquares(AsPiece(sum.subspan(from, to - from)));
      });
    });
  });
  return squares;
}

StripeReport StripeExecutor::Prepare(const StepOrder& order, const StepVectors& vectors) {
  VectorStep step;
  step.last = last_;
  step.optimizer = order.optimizer;
  step.statistics_divisor = order.statistics_divisor;
  step.running_means = sluice::OfStripe(order.running_means, stripes_, stripe_);
  step.current = vectors.current;
  step.next = vectors.next;
  optimizer_.Begin(std::move(step));
  StripeReport report;
  if (optimizer_.scales()) {
    report.updates = optimizer_.MeasureUpdates();
    report.bad = InVector(optimizer_.bad());
  } else {
    report.bad = InVector(optimizer_.Foresee());
    report.failure = optimizer_.failure();
  }
  return report;
}

void StripeExecutor::Clear() {
  sum_.Clear();
  last_.reset();
}

TrustRates StripeExecutor::OfStripe(const TrustRates& whole) const {
  TrustRates rates;
  rates.sure = whole.sure;
  rates.rates.reserve(range_indexes_.size());
  for (const size_t index : range_indexes_) rates.rates.push_back(whole.rates[index]);
  return rates;
}

absl::optional<uint64_t> StripeExecutor::InVector(absl::optional<uint64_t> element) const {
  if (element.has_value()) element = stripes_.InVector(stripe_, *element);
  return element;
}

}  // namespace sluice

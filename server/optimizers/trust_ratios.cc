#include "server/optimizers/trust_ratios.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_math.h"
#include "server/optimizers/optimizer.h"

namespace sluice {
namespace {

// Elements whose updates are made at once: a multiple of 8, as SquareSum wants it.
constexpr uint64_t kBlock = 2048;

SLUICE_VECTOR_CLONES
void Move(float rate, size_t count, const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) next[i] = current[i] - rate * next[i];
}

TrustSquares MeasurePart(uint64_t begin, uint64_t end, absl::Span<const float> current,
                         TrustRatios::MakeUpdate make) {
  alignas(64) float update[kBlock];
  SquareSum of_current;
  SquareSum of_update;
  for (; begin < end; begin += kBlock) {
    const absl::Span<float> block = absl::MakeSpan(update, std::min(kBlock, end - begin));
    make(begin, block);
    of_current.Add(AsPiece(current.subspan(begin, block.size())));
    of_update.Add(AsPiece(block));
  }
  return {of_current.Get(), of_update.Get()};
}

// The range's sums over all its parts. `next` has the place in each stripe's list, which is after
// the ranges before.
TrustSquares SumOver(const GroupRun& range, const Stripes& stripes,
                     const std::vector<std::vector<TrustSquares>>& measured,
                     std::vector<size_t>& next) {
  TrustSquares sum;
  ForEachUnit(stripes.unit(), range.begin, range.end, [&](uint64_t begin, uint64_t) {
    const uint32_t stripe = stripes.StripeOf(begin);
    const TrustSquares& part = measured[stripe][next[stripe]++];
    sum.current += part.current;
    sum.update += part.update;
  });
  return sum;
}

}  // namespace

TrustRates ComputeTrustRates(const std::vector<GroupRun>& ranges, const Stripes& stripes,
                             const std::vector<double>& learning_rates,
                             const std::vector<std::vector<TrustSquares>>& measured) {
  TrustRates rates;
  rates.rates.resize(ranges.size());
  rates.sure = true;
  std::vector<size_t> next(stripes.count());
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].kind != RangeKind::kParameter) continue;
    const TrustSquares sum = SumOver(ranges[i], stripes, measured, next);
    const bool both = sum.current > 0 && sum.update > 0;
    const double ratio = both ? std::sqrt(sum.current / sum.update) : 1;
    rates.rates[i] = static_cast<float>(learning_rates[ranges[i].group] * ratio);
    // |p − rate · u| ≤ ‖p‖ + rate · ‖u‖. NaN is not sure.
    const double most = std::sqrt(sum.current) + rates.rates[i] * std::sqrt(sum.update);
    rates.sure = rates.sure && most < kSafeMagnitude;
  }
  return rates;
}

TrustRatios::TrustRatios(std::vector<GroupRun> ranges, uint64_t unit) : ranges_(std::move(ranges)) {
  for (const GroupRun& range : ranges_) {
    if (range.kind != RangeKind::kParameter) continue;
    ForEachUnit(unit, range.begin, range.end, [this](uint64_t begin, uint64_t end) {
      parts_.push_back({begin, end});
    });
  }
}

std::vector<TrustSquares> TrustRatios::Measure(absl::Span<const float> current, Parallel& parallel,
                                               MakeUpdate make) const {
  std::vector<TrustSquares> measured(parts_.size());
  parallel.For(parts_.size(), [&](size_t i) {
    measured[i] = MeasurePart(parts_[i].begin, parts_[i].end, current, make);
  });
  return measured;
}

void TrustRatios::Apply(uint64_t begin, absl::Span<const float> current,
                        absl::Span<float> next) const {
  ForEachPart(ranges_, begin, begin + next.size(),
              [&](const GroupRun& range, uint64_t from, uint64_t to) {
                if (range.kind != RangeKind::kParameter) return;
                Move(rates_[&range - ranges_.data()], to - from, current.data() + from,
                     next.data() + (from - begin));
              });
}

}  // namespace sluice

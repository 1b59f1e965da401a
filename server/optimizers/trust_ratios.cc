#include "server/optimizers/trust_ratios.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

SLUICE_VECTOR_CLONES
void Move(float rate, size_t count, const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) next[i] = current[i] - rate * next[i];
}

}  // namespace

TrustRatios::TrustRatios(std::vector<GroupRun> ranges)
    : ranges_(std::move(ranges)), rates_(ranges_.size()) {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const GroupRun& range = ranges_[i];
    if (range.kind != RangeKind::kParameter) continue;
    for (uint64_t begin = range.begin; begin < range.end; begin += kPartElements) {
      parts_.push_back({i, begin, std::min(range.end, begin + kPartElements)});
    }
  }
}

void TrustRatios::Measure(absl::Span<const float> current, absl::Span<const float> update,
                          const std::vector<double>& learning_rates, Parallel& parallel) {
  parallel.For(parts_.size(), [&](size_t i) {
    Part& part = parts_[i];
    const auto squares = [&part](absl::Span<const float> vector) {
      return SumOfSquares(AsPiece(vector.subspan(part.begin, part.end - part.begin)));
    };
    part.current = squares(current);
    part.update = squares(update);
  });
  auto part = parts_.begin();
  for (size_t i = 0; i < ranges_.size(); ++i) {
    double of_current = 0;
    double of_update = 0;
    for (; part != parts_.end() && part->range == i; ++part) {
      of_current += part->current;
      of_update += part->update;
    }
    const bool both = of_current > 0 && of_update > 0;
    const double ratio = both ? std::sqrt(of_current / of_update) : 1;
    rates_[i] = static_cast<float>(learning_rates[ranges_[i].group] * ratio);
  }
}

void TrustRatios::Apply(uint64_t begin, uint64_t end, absl::Span<const float> current,
                        absl::Span<float> next) const {
  ForEachPart(ranges_, begin, end, [&](const GroupRun& range, uint64_t from, uint64_t to) {
    if (range.kind != RangeKind::kParameter) return;
    Move(rates_[&range - ranges_.data()], to - from, current.data() + from, next.data() + from);
  });
}

}  // namespace sluice

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

void TrustRatios::MeasurePart(absl::Span<const float> current, MakeUpdate make, Part& part) {
  alignas(64) float update[kBlock];
  SquareSum of_current;
  SquareSum of_update;
  for (uint64_t begin = part.begin; begin < part.end; begin += kBlock) {
    const absl::Span<float> block = absl::MakeSpan(update, std::min(kBlock, part.end - begin));
    make(begin, block);
    of_current.Add(AsPiece(current.subspan(begin, block.size())));
    of_update.Add(AsPiece(block));
  }
  part.current = of_current.Get();
  part.update = of_update.Get();
}

void TrustRatios::Measure(absl::Span<const float> current,
                          const std::vector<double>& learning_rates, Parallel& parallel,
                          MakeUpdate make) {
  parallel.For(parts_.size(), [&](size_t i) { MeasurePart(current, make, parts_[i]); });
  sure_ = true;
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
    // |p − rate · u| ≤ ‖p‖ + rate · ‖u‖. NaN is not sure.
    const double most = std::sqrt(of_current) + rates_[i] * std::sqrt(of_update);
    sure_ = sure_ && most < kSafeMagnitude;
  }
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

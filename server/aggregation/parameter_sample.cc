#include "server/aggregation/parameter_sample.h"

#include <algorithm>

#include "common/tensor/fetch_ahead.h"

namespace sluice {
namespace {

constexpr uint64_t kBlock = 64;  // parameters: whole cache lines

uint64_t ParametersOf(const std::vector<KindRun>& runs) {
  uint64_t count = 0;
  for (const KindRun& run : runs) {
    if (run.kind == RangeKind::kParameter) count += run.end - run.begin;
  }
  return count;
}

}  // namespace

ParameterSample::ParameterSample(const Layout& layout, const Stripes& stripes) {
  const std::vector<KindRun> runs = layout.Runs();
  const uint64_t count = ParametersOf(runs);
  // Block i begins at parameter i · count / blocks, rounded down to whole blocks.
  const uint64_t whole = (count + kBlock - 1) / kBlock;
  const uint64_t blocks = std::min(whole, kSize / kBlock);
  uint64_t before = 0;  // parameters before the run
  uint64_t next = 0;    // block
  for (const KindRun& run : runs) {
    if (run.kind != RangeKind::kParameter) continue;
    const uint64_t end = before + (run.end - run.begin);
    for (; next < blocks; ++next) {
      const uint64_t at = next * whole / blocks * kBlock;
      const uint64_t from = run.begin + (std::max(at, before) - before);
      const uint64_t to = run.begin + (std::min(at + kBlock, end) - before);
      ForEachUnit(stripes.unit(), from, to, [&](uint64_t unit_from, uint64_t unit_to) {
        const uint32_t stripe = stripes.StripeOf(unit_from);
        blocks_.push_back({stripes.Before(stripe, unit_from), unit_to - unit_from, stripe});
      });
      if (at + kBlock > end) break;  // the next run has its rest
    }
    before = end;
  }
}

uint64_t ParameterSample::SizeIn(uint32_t stripe) const {
  uint64_t size = 0;
  for (const Block& block : blocks_) size += block.stripe == stripe ? block.size : 0;
  return size;
}

std::vector<float> ParameterSample::Read(uint32_t stripe,
                                         absl::Span<const float> parameters) const {
  // Blocks lie far apart: the cache misses of all, not of one after the other.
  uint64_t size = 0;
  for (const Block& block : blocks_) {
    if (block.stripe != stripe) continue;
    size += block.size;
    FetchAhead(parameters.data() + block.begin, block.size * sizeof(float));
  }
  std::vector<float> part;
  part.reserve(size);
  for (const Block& block : blocks_) {
    if (block.stripe != stripe) continue;
    const absl::Span<const float> from = parameters.subspan(block.begin, block.size);
    part.insert(part.end(), from.begin(), from.end());
  }
  return part;
}

std::vector<float> ParameterSample::Join(const std::vector<std::vector<float>>& parts) const {
  std::vector<float> sample;
  std::vector<size_t> next(parts.size());
  for (const Block& block : blocks_) {
    const auto from = parts[block.stripe].begin() + static_cast<int64_t>(next[block.stripe]);
    sample.insert(sample.end(), from, from + static_cast<int64_t>(block.size));
    next[block.stripe] += block.size;
  }
  return sample;
}

}  // namespace sluice

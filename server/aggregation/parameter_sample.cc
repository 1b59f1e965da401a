#include "server/aggregation/parameter_sample.h"

#include <algorithm>
#include <cmath>

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

constexpr uint64_t kBlock = 64;      // parameters: whole cache lines
constexpr uint64_t kCacheLine = 16;  // parameters

uint64_t ParametersOf(const std::vector<KindRun>& runs) {
  uint64_t count = 0;
  for (const KindRun& run : runs) {
    if (run.kind == RangeKind::kParameter) count += run.end - run.begin;
  }
  return count;
}

}  // namespace

ParameterSample::ParameterSample(const Layout& layout) {
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
      const uint64_t from = std::max(at, before);
      const uint64_t to = std::min(at + kBlock, end);
      if (from < to) blocks_.push_back({run.begin + (from - before), to - from});
      if (at + kBlock > end) break;  // the next run has its rest
    }
    before = end;
  }
}

void ParameterSample::Read(absl::Span<const float> parameters, std::vector<float>* values) const {
  values->clear();
  for (const Block& block : blocks_) {
    const auto from = parameters.begin() + static_cast<int64_t>(block.begin);
    values->insert(values->end(), from, from + static_cast<int64_t>(block.size));
  }
}

double ParameterSample::Norm(absl::Span<const float> parameters) const {
  // Blocks lie far apart: the cache misses of all, not of one after the other.
  for (const Block& block : blocks_) {
    for (uint64_t i = 0; i < block.size; i += kCacheLine) {
      __builtin_prefetch(parameters.data() + block.begin + i);
    }
  }
  double squares = 0;
  for (const Block& block : blocks_) {
    squares += SumOfSquares(AsPiece(parameters.subspan(block.begin, block.size)));
  }
  return std::sqrt(squares);
}

}  // namespace sluice

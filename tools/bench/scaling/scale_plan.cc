#include "tools/bench/scaling/scale_plan.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace sluice::bench {
namespace {

constexpr uint64_t kProgramBytes = 30000000;

}  // namespace

uint64_t NeededBytes(uint64_t elements, uint32_t workers) {
  const uint64_t vector = elements * sizeof(float);
  return (5 + workers) * vector + 3 * workers * vector + (1 + workers) * kProgramBytes;
}

ScalePlan PlanScale(const Row& row, const std::vector<double>& megabytes,
                    const std::vector<uint32_t>& workers, uint64_t memory_bytes) {
  ScalePlan plan;
  for (const double size : megabytes) {
    std::vector<uint32_t> too_many;
    for (const uint32_t count : workers) {
      const Cell cell = {row, ElementsOf(size), count};
      if (NeededBytes(cell.elements, count) <= memory_bytes) {
        plan.cells.push_back(cell);
      } else {
        too_many.push_back(count);
      }
    }
    if (too_many.empty()) continue;
    plan.skipped.push_back(
        absl::StrFormat("%.1f MB with %s workers: more than the %.1f GB of memory", size,
                        absl::StrJoin(too_many, ", "), static_cast<double>(memory_bytes) / 1e9));
  }
  return plan;
}

}  // namespace sluice::bench

#include "server/admission/in_flight_capacity.h"

#include <algorithm>

#include "server/admission/in_flight_limit.h"

namespace sluice {
namespace {

// Gradients in flight beyond these make no step faster, unless the worker of a low rank is late.
constexpr uint64_t kAmpleVectors = 64;
constexpr uint64_t kAmpleBytes = 128'000'000;

// When the wait for a worker is over, all gradients that have arrived make the step. Those that
// wait at their header would be lost.
bool AllMustArrive(const Consistency& consistency) {
  return consistency.order == ReductionOrder::kRank &&
         consistency.on_max_step_wait == StepWaitAction::kProceed &&
         consistency.max_step_wait < absl::InfiniteDuration();
}

}  // namespace

uint32_t InFlightCapacity(const Layout& layout, const ShardOptions& options,
                          const Consistency& consistency) {
  const uint64_t rows = layout.tables().empty() ? 0 : options.most_row_bytes;
  const uint64_t bytes = std::max<uint64_t>(layout.size() * sizeof(float) + rows, 1);
  uint64_t vectors = options.max_in_flight_bytes / bytes;
  if (options.ample_in_flight && !AllMustArrive(consistency)) {
    vectors = std::min(vectors, std::max(kAmpleVectors, kAmpleBytes / bytes));
  }
  return static_cast<uint32_t>(
      std::min<uint64_t>(std::max<uint64_t>(vectors, InFlightLimit::kFewest), UINT32_MAX));
}

}  // namespace sluice

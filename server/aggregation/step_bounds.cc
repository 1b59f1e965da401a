#include "server/aggregation/step_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// False for NaN.
bool IsSafe(double magnitude) { return magnitude < kSafeMagnitude; }

bool AreSafe(const absl::optional<Magnitudes>& all) {
  return all.has_value() && IsSafe(all->gradient) && IsSafe(all->parameters) &&
         std::all_of(all->slots.begin(), all->slots.end(), IsSafe);
}

void Raise(float magnitude, std::atomic<uint32_t>& largest) {
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  uint32_t before = largest;
  while (before < bits && !largest.compare_exchange_weak(before, bits)) {
  }
}

// Returns the largest magnitude, and starts anew.
float Take(std::atomic<uint32_t>& largest) {
  const uint32_t bits = largest.exchange(0);
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof(magnitude));
  return magnitude;
}

}  // namespace

StepBounds::StepBounds() { before_.parameters = kUnknown; }

void StepBounds::Begin(Optimizer& optimizer, double sum, float divisor, double statistics) {
  before_.gradient = sum / divisor;
  sum_is_sure_ = IsSafe(sum) && IsSafe(statistics);
  const absl::optional<Magnitudes> after = optimizer.After(before_);
  is_sure_ = sum_is_sure_ && AreSafe(after);
  bool next_is_sure = false;
  if (after.has_value()) {
    after_ = *after;
    after_.gradient = before_.gradient;
    next_is_sure = is_sure_ && AreSafe(optimizer.After(after_));
  }
  measures_ = !next_is_sure && after.has_value();
  Take(parameters_);
  for (Bits& slot : slots_) Take(slot);
}

void StepBounds::Measure(uint64_t begin, absl::Span<const float> parameters,
                         const std::vector<OptimizerSlot>& slots) {
  Raise(LargestMagnitude(AsPiece(parameters)), parameters_);
  for (const OptimizerSlot& slot : slots) {
    const absl::Span<const float> values = slot.values.subspan(begin, parameters.size());
    Raise(LargestMagnitude(AsPiece(values)), slots_.at(slot.index));
  }
}

void StepBounds::Commit() {
  if (!measures_) {
    before_ = after_;
    return;
  }
  before_.parameters = Take(parameters_);
  for (size_t i = 0; i < kMostSlots; ++i) before_.slots.at(i) = Take(slots_.at(i));
}

void StepBounds::ForgetSlots() { before_.slots.fill(kUnknown); }

}  // namespace sluice

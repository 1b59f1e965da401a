#include "tools/bench/harness/gradient.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

// The finalizer of MurmurHash3: every bit of `value` moves every bit of the result.
uint32_t Mix(uint32_t value) {
  value = (value ^ (value >> 16)) * 0x85ebca6b;
  value = (value ^ (value >> 13)) * 0xc2b2ae35;
  return value ^ (value >> 16);
}

}  // namespace

std::vector<float> SyntheticGradient(uint64_t elements) {
  std::vector<float> gradient(elements);
  WriteSyntheticGradient(absl::MakeSpan(gradient));
  return gradient;
}

void WriteSyntheticGradient(absl::Span<float> gradient) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto noise = static_cast<int32_t>(Mix(static_cast<uint32_t>(i)));
    gradient[i] = std::ldexp(static_cast<float>(noise), -40);
  }
}

absl::Status CheckParameters(absl::Span<const float> gradient, uint64_t steps,
                             absl::Span<const float> parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const double expected = -kLearningRate * static_cast<double>(steps) * gradient[i];
    if (std::abs(parameters[i] - expected) <= 1e-4 * std::abs(expected)) continue;
    return absl::InternalError(absl::StrCat("element ", i, " is ", parameters[i], " at step ",
                                            steps, ", expected ", expected));
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench

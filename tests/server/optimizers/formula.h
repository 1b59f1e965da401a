// Runs an optimizer in tests, and compares it with its formula in double precision.

#ifndef SLUICE_TESTS_SERVER_OPTIMIZERS_FORMULA_H_
#define SLUICE_TESTS_SERVER_OPTIMIZERS_FORMULA_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/optimizers/optimizer.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Numbers in [-1, 1), the same ones at each call.
inline Values Numbers(size_t size, uint32_t seed) {
  Values values(size);
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return values;
}

inline OptimizerStep StepOf(uint64_t number, float divisor, double learning_rate) {
  OptimizerStep step;
  step.number = number;
  step.divisor = divisor;
  step.learning_rates = {learning_rate};
  return step;
}

// Makes one step of all elements, in pieces of at most `piece` elements.
inline void Apply(Optimizer& optimizer, const OptimizerStep& step, const Values& sum,
                  const Values& current, Values& next, size_t piece = 1000000) {
  optimizer.Begin(step);
  for (size_t begin = 0; begin < sum.size(); begin += piece) {
    const auto part = [&](const Values& values) {
      return absl::MakeConstSpan(values).subspan(begin, piece);
    };
    optimizer.Apply(
        {0, begin, part(sum), part(current), absl::MakeSpan(next).subspan(begin, piece)});
  }
}

// Expects a hundred steps to follow the formula. `element` is the state of one parameter before its
// first step; element.Next(parameter, gradient) returns the parameter after the next step.
template <typename Element>
void ExpectFollows(const OptimizerOptions& options, const Element& element) {
  constexpr size_t kSize = 1082;
  constexpr float kWorkers = 3;
  const auto optimizer = MakeOptimizer({options}, kSize);
  Values current = Numbers(kSize, 1);
  Values next(kSize);
  std::vector<double> expected(current.begin(), current.end());
  std::vector<Element> elements(kSize, element);
  for (int step = 1; step <= 100; ++step) {
    const Values sum = Numbers(kSize, 100 + step);
    Apply(*optimizer, StepOf(step, kWorkers, LearningRateOf(options)), sum, current, next,
          37 + step);
    for (size_t i = 0; i < kSize; ++i) {
      expected[i] = elements[i].Next(expected[i], static_cast<double>(sum[i]) / kWorkers);
      ASSERT_NEAR(next[i], expected[i], 1e-5 + 1e-6 * std::abs(expected[i]))
          << "parameter " << i << ", step " << step;
    }
    std::swap(current, next);
  }
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_OPTIMIZERS_FORMULA_H_

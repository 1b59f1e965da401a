// Adagrad (Duchi, Hazan, Singer 2011, "Adaptive Subgradient Methods for Online Learning and
// Stochastic Optimization").
//
// The formulas are those of torch::optim::Adagrad, in float32. With g the gradient and t the number
// of the step:
//   g = g + weight_decay · p
//   s ← s + g², where s starts as initial_accumulator_value
//   p ← p − learning_rate / (1 + (t − 1) · lr_decay) · g / (√s + eps)

#include <algorithm>
#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float weight_decay;
  float eps;
  float rate;
};

SLUICE_VECTOR_CLONES
void Step(const Coefficients c, size_t count, const float* __restrict sum,
          const float* __restrict current, float* __restrict squares, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.weight_decay * current[i];
    const float s = squares[i] + g * g;
    squares[i] = s;
    next[i] = current[i] - c.rate * g / (std::sqrt(s) + c.eps);
  }
}

}  // namespace

template <>
class StepRule<AdagradOptions> {
 public:
  StepRule(const AdagradOptions& o, const OptimizerStep& step, double learning_rate)
      : first_(step.begins()), initial_(static_cast<float>(o.initial_accumulator_value)) {
    const double slower = 1 + static_cast<double>(step.number - 1) * o.lr_decay;
    c_.divisor = step.divisor;
    c_.weight_decay = static_cast<float>(o.weight_decay);
    c_.eps = static_cast<float>(o.eps);
    c_.rate = static_cast<float>(learning_rate / slower);
  }

  void Apply(const StepArrays& a) const {
    if (first_) std::fill_n(a.slots[0], a.count, initial_);
    Step(c_, a.count, a.sum, a.current, a.slots[0], a.next);
  }

  // The formulas with every term made positive, and √s ≥ 0 left out of the divisor. s stays ≥ 0.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    const double g = before.gradient + double{c_.weight_decay} * before.parameters;
    after.gradient = g + c_.rate * g;
    after.slots[0] = before.slots[0] + initial_ + g * g;
    after.parameters = before.parameters + c_.rate * g / c_.eps;
    return after;
  }

 private:
  Coefficients c_;
  bool first_;
  float initial_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AdagradOptions> groups,
                                                    uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const AdagradOptions& options);

}  // namespace sluice

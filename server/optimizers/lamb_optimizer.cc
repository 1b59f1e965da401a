// The elementwise half of LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning:
// Training BERT in 76 minutes", algorithm 2), in float32.
//
// With g the gradient and t the number of the step:
//   m ← beta1 · m + (1 − beta1) · g
//   v ← beta2 · v + (1 − beta2) · g²
//   u = (m / (1 − beta1^t)) / (√v / √(1 − beta2^t) + eps) + weight_decay · p
// It writes u, the update, in place of the next parameters. TrustRatios is the other half.

#include <cmath>

#include "common/tensor/vector_clones.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float beta1, fresh1;  // 1 − beta1
  float beta2, fresh2;
  float mean_scale;  // 1 / (1 − beta1^t)
  float root_scale;  // 1 / √(1 − beta2^t)
  float eps;
  float weight_decay;
};

SLUICE_VECTOR_CLONES
void Update(const Coefficients c, size_t count, const float* __restrict sum,
            const float* __restrict current, float* __restrict mean, float* __restrict square,
            float* __restrict update) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor;
    const float m = c.beta1 * mean[i] + c.fresh1 * g;
    const float v = c.beta2 * square[i] + c.fresh2 * g * g;
    mean[i] = m;
    square[i] = v;
    update[i] =
        c.mean_scale * m / (std::sqrt(v) * c.root_scale + c.eps) + c.weight_decay * current[i];
  }
}

}  // namespace

template <>
class StepRule<LambOptions> {
 public:
  StepRule(const LambOptions& o, const OptimizerStep& step, double) {
    const auto t = static_cast<double>(step.number);
    c_.divisor = step.divisor;
    c_.beta1 = static_cast<float>(o.beta1);
    c_.fresh1 = static_cast<float>(1 - o.beta1);
    c_.beta2 = static_cast<float>(o.beta2);
    c_.fresh2 = static_cast<float>(1 - o.beta2);
    c_.mean_scale = static_cast<float>(1 / (1 - std::pow(o.beta1, t)));
    c_.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
    c_.eps = static_cast<float>(o.eps);
    c_.weight_decay = static_cast<float>(o.weight_decay);
  }

  void Apply(const StepArrays& a) const {
    Update(c_, a.count, a.sum, a.current, a.slots[0], a.slots[1], a.next);
  }

 private:
  Coefficients c_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<LambOptions> groups, uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const LambOptions& options);

}  // namespace sluice

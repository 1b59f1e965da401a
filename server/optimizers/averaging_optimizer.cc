// Periodic and elastic averaging (Zhang, Choromanska, LeCun 2015, "Deep Learning with Elastic
// Averaging SGD", equation 6, where the moving rate is β), with momentum of the server's steps.
//
// Workers push parameters in place of gradients. With m their mean and r the moving rate:
//   p ← p + r · (m − p)
// If r is 1, p becomes exactly m.
//
// Where workers take local steps, their mean moves less than one process would in as many batches.
// Momentum makes up for that: it takes d = p − m, how far the workers moved, for the gradient of a
// step of SGD. With μ the outer momentum:
//   b ← μ · b + d
//   p ← p − r · b              slow momentum (Wang et al. 2019, "SlowMo", algorithm 1)
//   p ← p − r · (d + μ · b)    Nesterov momentum (Douillard et al. 2023, "DiLoCo", algorithm 1)

#include <algorithm>

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_math.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {
namespace {

SLUICE_VECTOR_CLONES
void Move(float rate, float divisor, size_t count, const float* __restrict sum,
          const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] + rate * (sum[i] / divisor - current[i]);
  }
}

struct Outer {
  float momentum;
  float arriving;  // the factors of d and of the new b in p's step
  float lasting;
};

SLUICE_VECTOR_CLONES
void MoveWithMomentum(const Outer& outer, float divisor, size_t count, const float* __restrict sum,
                      const float* __restrict current, float* __restrict momentum,
                      float* __restrict next) {
  const Outer o = outer;
  for (size_t i = 0; i < count; ++i) {
    const float d = current[i] - sum[i] / divisor;
    const float b = o.momentum * momentum[i] + d;
    momentum[i] = b;
    next[i] = current[i] - (o.arriving * d + o.lasting * b);
  }
}

}  // namespace

template <>
class StepRule<AveragingOptions> {
 public:
  StepRule(const AveragingOptions& o, const OptimizerStep& step, double)
      : moving_rate_(static_cast<float>(o.moving_rate)), divisor_(step.divisor) {
    outer_.momentum = static_cast<float>(o.outer_momentum);
    outer_.arriving = o.outer_nesterov ? moving_rate_ : 0;
    outer_.lasting =
        static_cast<float>(o.moving_rate * (o.outer_nesterov ? o.outer_momentum : 1.0));
  }

  void Apply(const StepArrays& a) const {
    if (outer_.momentum != 0) {
      MoveWithMomentum(outer_, divisor_, a.count, a.sum, a.current, a.slots[0], a.next);
    } else if (moving_rate_ == 1) {
      DivideTo({a.sum, a.count}, divisor_, {a.next, a.count});
    } else {
      Move(moving_rate_, divisor_, a.count, a.sum, a.current, a.next);
    }
  }

  // |d| ≤ |m| + |p|, and so on: the formulas with every term made positive. Without momentum, a
  // parameter moves towards the mean and not past it, except for rounding.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    const double d = before.gradient + before.parameters;
    after.gradient = d;
    after.parameters = std::max(before.gradient, before.parameters);
    if (outer_.momentum != 0) {
      const double b = outer_.momentum * before.slots[0] + d;
      after.slots[0] = b;
      after.gradient = d + b;  // bounds d, b and what both move, since no rate is above 1
      after.parameters = before.parameters + after.gradient;
    }
    return after;
  }

 private:
  float moving_rate_;
  float divisor_;
  Outer outer_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AveragingOptions> groups,
                                                    uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const AveragingOptions& options);

}  // namespace sluice

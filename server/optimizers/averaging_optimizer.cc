// Periodic and elastic averaging (Zhang, Choromanska, LeCun 2015, "Deep Learning with Elastic
// Averaging SGD", equation 6, where the moving rate is β).
//
// Workers push parameters in place of gradients. With m their mean and r the moving rate:
//   p ← p + r · (m − p)
// If r is 1, p becomes exactly m.

#include <algorithm>

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_math.h"
#include "server/optimizers/elementwise_optimizer.h"

namespace sluice {
namespace {

SLUICE_VECTOR_CLONES
void Move(float rate, float divisor, size_t count, const float* __restrict sum,
          const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] + rate * (sum[i] / divisor - current[i]);
  }
}

}  // namespace

template <>
class StepRule<AveragingOptions> {
 public:
  StepRule(const AveragingOptions& options, const OptimizerStep& step, double)
      : moving_rate_(static_cast<float>(options.moving_rate)), divisor_(step.divisor) {}

  void Apply(const StepArrays& a) const {
    if (moving_rate_ == 1) {
      DivideTo({a.sum, a.count}, divisor_, {a.next, a.count});
    } else {
      Move(moving_rate_, divisor_, a.count, a.sum, a.current, a.next);
    }
  }

  // A parameter moves towards the mean and not past it, except for rounding. |m − p| ≤ |m| + |p|.
  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    after.gradient = before.gradient + before.parameters;
    after.parameters = std::max(before.gradient, before.parameters);
    return after;
  }

 private:
  float moving_rate_;
  float divisor_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<AveragingOptions> groups,
                                                    uint64_t size);

}  // namespace sluice

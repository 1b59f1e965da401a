// No optimizer: with s the sum of a step's weighted gradients and w that of their weights, what the
// workers pull is
//   p ← s / w
// They step with optimizers of their own, as in distributed data parallel training (Li et al. 2020,
// "PyTorch Distributed").

#include "common/tensor/vector_math.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/elementwise_rows.h"

namespace sluice {

template <>
class StepRule<MeanGradientOptions> {
 public:
  StepRule(const MeanGradientOptions& /*options*/, const OptimizerStep& step, double /*rate*/)
      : divisor_(step.divisor) {}

  void Apply(const StepArrays& a) const { DivideTo({a.sum, a.count}, divisor_, {a.next, a.count}); }

  Magnitudes After(const Magnitudes& before) const {
    Magnitudes after;
    after.gradient = after.parameters = before.gradient;
    return after;
  }

 private:
  float divisor_;
};

template std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<MeanGradientOptions> groups,
                                                    uint64_t size);
template std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const MeanGradientOptions& options);

}  // namespace sluice

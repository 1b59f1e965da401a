#include "server/averaging_optimizer.h"

#include "server/vector_math.h"

namespace sluice {
namespace {

class AveragingOptimizer final : public Optimizer {
 public:
  explicit AveragingOptimizer(float moving_rate) : moving_rate_(moving_rate) {}

  void Apply(const OptimizerStep& step, uint64_t, absl::Span<const float> sum,
             absl::Span<const float> current, absl::Span<float> next) override {
    if (moving_rate_ == 1) {
      DivideTo(sum, step.divisor, next);
      return;
    }
    const float* __restrict in = sum.data();
    const float* __restrict from = current.data();
    float* __restrict out = next.data();
    for (size_t i = 0; i < next.size(); ++i) {
      out[i] = from[i] + moving_rate_ * (in[i] / step.divisor - from[i]);
    }
  }

 private:
  const float moving_rate_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAveragingOptimizer(const AveragingOptions& options) {
  return std::make_unique<AveragingOptimizer>(static_cast<float>(options.moving_rate));
}

}  // namespace sluice

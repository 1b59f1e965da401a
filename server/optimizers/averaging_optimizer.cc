#include "server/optimizers/averaging_optimizer.h"

#include "common/tensor/vector_clones.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

SLUICE_VECTOR_CLONES
void Move(float rate, float divisor, size_t count, const float* __restrict sum,
          const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] + rate * (sum[i] / divisor - current[i]);
  }
}

class AveragingOptimizer final : public Optimizer {
 public:
  explicit AveragingOptimizer(float moving_rate) : moving_rate_(moving_rate) {}

  void Begin(const OptimizerStep& step) override { divisor_ = step.divisor; }

  void Apply(const OptimizerPiece& piece) override {
    if (moving_rate_ == 1) {
      DivideTo(piece.sum, divisor_, piece.next);
    } else {
      Move(moving_rate_, divisor_, piece.next.size(), piece.sum.data(), piece.current.data(),
           piece.next.data());
    }
  }

  std::vector<OptimizerSlot> slots() override { return {}; }

 private:
  const float moving_rate_;
  float divisor_ = 1;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAveragingOptimizer(const AveragingOptions& options) {
  return std::make_unique<AveragingOptimizer>(static_cast<float>(options.moving_rate));
}

}  // namespace sluice

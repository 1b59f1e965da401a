#include "server/optimizers/lamb_optimizer.h"

#include <cmath>
#include <utility>

#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_clones.h"

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

class LambOptimizer final : public Optimizer {
 public:
  LambOptimizer(std::vector<LambOptions> groups, uint64_t size)
      : groups_(std::move(groups)),
        coefficients_(groups_.size()),
        mean_(FloatBuffer::Zeroed(size)),
        square_(FloatBuffer::Zeroed(size)) {}

  void Begin(const OptimizerStep& step) override {
    const auto t = static_cast<double>(step.number);
    for (size_t i = 0; i < groups_.size(); ++i) {
      const LambOptions& group = groups_[i];
      Coefficients& c = coefficients_[i];
      c.divisor = step.divisor;
      c.beta1 = static_cast<float>(group.beta1);
      c.fresh1 = static_cast<float>(1 - group.beta1);
      c.beta2 = static_cast<float>(group.beta2);
      c.fresh2 = static_cast<float>(1 - group.beta2);
      c.mean_scale = static_cast<float>(1 / (1 - std::pow(group.beta1, t)));
      c.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(group.beta2, t)));
      c.eps = static_cast<float>(group.eps);
      c.weight_decay = static_cast<float>(group.weight_decay);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    Update(coefficients_[piece.group], piece.next.size(), piece.sum.data(), piece.current.data(),
           mean_.from(piece.begin), square_.from(piece.begin), piece.next.data());
  }

  std::vector<OptimizerSlot> slots() override {
    return {{"exp_avg", mean_.span()}, {"exp_avg_sq", square_.span()}};
  }

 private:
  const std::vector<LambOptions> groups_;
  std::vector<Coefficients> coefficients_;  // of each group, for the step under way
  FloatBuffer mean_;
  FloatBuffer square_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLambOptimizer(std::vector<LambOptions> groups, uint64_t size) {
  return std::make_unique<LambOptimizer>(std::move(groups), size);
}

}  // namespace sluice

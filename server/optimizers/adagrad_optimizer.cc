#include "server/optimizers/adagrad_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float weight_decay;
  float eps;
  float rate;
  float initial;
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

class AdagradOptimizer final : public Optimizer {
 public:
  AdagradOptimizer(std::vector<AdagradOptions> groups, uint64_t size)
      : groups_(std::move(groups)),
        coefficients_(groups_.size()),
        squares_(FloatBuffer::Zeroed(size)) {}

  void Begin(const OptimizerStep& step) override {
    first_ = step.number == 1;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const AdagradOptions& group = groups_[i];
      const double slower = 1 + static_cast<double>(step.number - 1) * group.lr_decay;
      Coefficients& c = coefficients_[i];
      c.divisor = step.divisor;
      c.weight_decay = static_cast<float>(group.weight_decay);
      c.eps = static_cast<float>(group.eps);
      c.rate = static_cast<float>(step.learning_rates[i] / slower);
      c.initial = static_cast<float>(group.initial_accumulator_value);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    const Coefficients& c = coefficients_[piece.group];
    float* const squares = squares_.from(piece.begin);
    if (first_) std::fill_n(squares, piece.next.size(), c.initial);
    Step(c, piece.next.size(), piece.sum.data(), piece.current.data(), squares, piece.next.data());
  }

  std::vector<OptimizerSlot> slots() override { return {{"sum", squares_.span()}}; }

 private:
  const std::vector<AdagradOptions> groups_;
  std::vector<Coefficients> coefficients_;  // of each group, for the step under way
  bool first_ = false;                      // which that step is
  FloatBuffer squares_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdagradOptimizer(std::vector<AdagradOptions> groups, uint64_t size) {
  return std::make_unique<AdagradOptimizer>(std::move(groups), size);
}

}  // namespace sluice

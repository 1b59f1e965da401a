#include "server/optimizers/rmsprop_optimizer.h"

#include <cmath>
#include <utility>

#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float weight_decay;
  float alpha, fresh;  // 1 − alpha
  float eps;
  float momentum;
  float learning_rate;
};

struct Arrays {
  size_t count;
  const float* sum;
  const float* current;
  float* square;
  float* mean;    // null unless centered
  float* buffer;  // null without momentum
  float* next;
};

template <bool kCentered, bool kMomentum>
SLUICE_LOOP_BODY void Step(const Coefficients c, size_t count, const float* __restrict sum,
                           const float* __restrict current, float* __restrict square,
                           float* __restrict mean, float* __restrict buffer,
                           float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.weight_decay * current[i];
    float variance = c.alpha * square[i] + c.fresh * g * g;
    square[i] = variance;
    if (kCentered) {
      const float a = c.alpha * mean[i] + c.fresh * g;
      mean[i] = a;
      variance -= a * a;
      variance = variance > 0 ? variance : 0;
    }
    float step = g / (std::sqrt(variance) + c.eps);
    if (kMomentum) {
      step += c.momentum * buffer[i];
      buffer[i] = step;
    }
    next[i] = current[i] - c.learning_rate * step;
  }
}

using Loop = void (*)(const Coefficients&, const Arrays&);

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const Arrays& a) {
  Step<false, false>(c, a.count, a.sum, a.current, a.square, a.mean, a.buffer, a.next);
}
SLUICE_VECTOR_CLONES
void WithMomentum(const Coefficients& c, const Arrays& a) {
  Step<false, true>(c, a.count, a.sum, a.current, a.square, a.mean, a.buffer, a.next);
}
SLUICE_VECTOR_CLONES
void Centered(const Coefficients& c, const Arrays& a) {
  Step<true, false>(c, a.count, a.sum, a.current, a.square, a.mean, a.buffer, a.next);
}
SLUICE_VECTOR_CLONES
void CenteredWithMomentum(const Coefficients& c, const Arrays& a) {
  Step<true, true>(c, a.count, a.sum, a.current, a.square, a.mean, a.buffer, a.next);
}

Loop LoopFor(const RmsPropOptions& options) {
  if (options.momentum > 0) return options.centered ? CenteredWithMomentum : WithMomentum;
  return options.centered ? Centered : Plain;
}

class RmsPropOptimizer final : public Optimizer {
 public:
  RmsPropOptimizer(std::vector<RmsPropOptions> groups, uint64_t size)
      : groups_(std::move(groups)),
        coefficients_(groups_.size()),
        square_(FloatBuffer::Zeroed(size)) {
    for (const RmsPropOptions& group : groups_) {
      if (group.centered && mean_.size() == 0) mean_ = FloatBuffer::Zeroed(size);
      if (group.momentum > 0 && buffer_.size() == 0) buffer_ = FloatBuffer::Zeroed(size);
    }
  }

  void Begin(const OptimizerStep& step) override {
    for (size_t i = 0; i < groups_.size(); ++i) {
      const RmsPropOptions& group = groups_[i];
      Coefficients& c = coefficients_[i];
      c.divisor = step.divisor;
      c.weight_decay = static_cast<float>(group.weight_decay);
      c.alpha = static_cast<float>(group.alpha);
      c.fresh = static_cast<float>(1 - group.alpha);
      c.eps = static_cast<float>(group.eps);
      c.momentum = static_cast<float>(group.momentum);
      c.learning_rate = static_cast<float>(step.learning_rates[i]);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    const Loop loop = LoopFor(groups_[piece.group]);
    loop(coefficients_[piece.group],
         {piece.next.size(), piece.sum.data(), piece.current.data(), square_.from(piece.begin),
          mean_.from(piece.begin), buffer_.from(piece.begin), piece.next.data()});
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> slots = {{"square_avg", square_.span()}};
    if (buffer_.size() > 0) slots.push_back({"momentum_buffer", buffer_.span()});
    if (mean_.size() > 0) slots.push_back({"grad_avg", mean_.span()});
    return slots;
  }

 private:
  const std::vector<RmsPropOptions> groups_;
  std::vector<Coefficients> coefficients_;  // of each group, for the step under way
  FloatBuffer square_;
  FloatBuffer mean_;    // empty if no group is centered
  FloatBuffer buffer_;  // empty if no group has momentum
};

}  // namespace

std::unique_ptr<Optimizer> MakeRmsPropOptimizer(std::vector<RmsPropOptions> groups, uint64_t size) {
  return std::make_unique<RmsPropOptimizer>(std::move(groups), size);
}

}  // namespace sluice

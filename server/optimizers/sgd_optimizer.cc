#include "server/optimizers/sgd_optimizer.h"

#include <algorithm>
#include <utility>

#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

struct Coefficients {
  float divisor;
  float learning_rate;
  float weight_decay;
  float momentum;
  float keep;  // 1 − dampening
};

struct Arrays {
  size_t count;
  const float* sum;
  const float* current;
  float* momentum;
  float* next;
};

template <bool kFirst, bool kNesterov>
SLUICE_LOOP_BODY void StepWithMomentum(const Coefficients c, size_t count,
                                       const float* __restrict sum, const float* __restrict current,
                                       float* __restrict momentum, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float d = sum[i] / c.divisor + c.weight_decay * current[i];
    const float b = kFirst ? d : c.momentum * momentum[i] + c.keep * d;
    momentum[i] = b;
    next[i] = current[i] - c.learning_rate * (kNesterov ? d + c.momentum * b : b);
  }
}

SLUICE_LOOP_BODY void StepWithout(const Coefficients c, size_t count, const float* __restrict sum,
                                  const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] - c.learning_rate * (sum[i] / c.divisor + c.weight_decay * current[i]);
  }
}

using Loop = void (*)(const Coefficients&, const Arrays&);

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const Arrays& a) {
  StepWithout(c, a.count, a.sum, a.current, a.next);
}
SLUICE_VECTOR_CLONES
void First(const Coefficients& c, const Arrays& a) {
  StepWithMomentum<true, false>(c, a.count, a.sum, a.current, a.momentum, a.next);
}
SLUICE_VECTOR_CLONES
void FirstNesterov(const Coefficients& c, const Arrays& a) {
  StepWithMomentum<true, true>(c, a.count, a.sum, a.current, a.momentum, a.next);
}
SLUICE_VECTOR_CLONES
void Later(const Coefficients& c, const Arrays& a) {
  StepWithMomentum<false, false>(c, a.count, a.sum, a.current, a.momentum, a.next);
}
SLUICE_VECTOR_CLONES
void LaterNesterov(const Coefficients& c, const Arrays& a) {
  StepWithMomentum<false, true>(c, a.count, a.sum, a.current, a.momentum, a.next);
}

Loop LoopFor(const SgdOptions& options, bool first) {
  if (options.momentum == 0) return Plain;
  if (first) return options.nesterov ? FirstNesterov : First;
  return options.nesterov ? LaterNesterov : Later;
}

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(std::vector<SgdOptions> groups, uint64_t size)
      : groups_(std::move(groups)), rules_(groups_.size()) {
    const bool remembers = std::any_of(groups_.begin(), groups_.end(),
                                       [](const SgdOptions& group) { return group.momentum != 0; });
    if (remembers) momentum_ = FloatBuffer::Zeroed(size);
  }

  void Begin(const OptimizerStep& step) override {
    for (size_t i = 0; i < groups_.size(); ++i) {
      const SgdOptions& group = groups_[i];
      Coefficients& c = rules_[i].coefficients;
      c.divisor = step.divisor;
      c.learning_rate = static_cast<float>(step.learning_rates[i]);
      c.weight_decay = static_cast<float>(group.weight_decay);
      c.momentum = static_cast<float>(group.momentum);
      c.keep = static_cast<float>(1 - group.dampening);
      rules_[i].loop = LoopFor(group, step.number == 1);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    const Rule& rule = rules_[piece.group];
    rule.loop(rule.coefficients, {piece.next.size(), piece.sum.data(), piece.current.data(),
                                  momentum_.from(piece.begin), piece.next.data()});
  }

  std::vector<OptimizerSlot> slots() override {
    if (momentum_.size() == 0) return {};
    return {{"momentum_buffer", momentum_.span()}};
  }

 private:
  struct Rule {
    Coefficients coefficients;
    Loop loop;
  };

  const std::vector<SgdOptions> groups_;
  std::vector<Rule> rules_;  // of each group, for the step under way
  FloatBuffer momentum_;     // empty if no group has any
};

}  // namespace

std::unique_ptr<Optimizer> MakeSgdOptimizer(std::vector<SgdOptions> groups, uint64_t size) {
  return std::make_unique<SgdOptimizer>(std::move(groups), size);
}

}  // namespace sluice

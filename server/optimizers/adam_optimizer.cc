#include "server/optimizers/adam_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

// Both kinds in one: each leaves out the other's decay by a factor that changes no bit.
struct Coefficients {
  float divisor;
  float penalty;        // of Adam: what weight decay adds to the gradient
  float kept;           // of AdamW: what weight decay leaves of a parameter
  float beta1, fresh1;  // 1 − beta1
  float beta2, fresh2;
  float root_scale;  // 1 / √(1 − beta2^t)
  float eps;
  float rate;  // learning_rate / (1 − beta1^t)
};

struct Arrays {
  size_t count;
  const float* sum;
  const float* current;
  float* mean;
  float* square;
  float* largest;  // null but for amsgrad
  float* next;
};

template <bool kAmsgrad>
SLUICE_LOOP_BODY void Step(const Coefficients c, size_t count, const float* __restrict sum,
                           const float* __restrict current, float* __restrict mean,
                           float* __restrict square, float* __restrict largest,
                           float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] / c.divisor + c.penalty * current[i];
    const float m = c.beta1 * mean[i] + c.fresh1 * g;
    const float v = c.beta2 * square[i] + c.fresh2 * g * g;
    mean[i] = m;
    square[i] = v;
    float by = v;
    if (kAmsgrad) {
      const float before = largest[i];
      by = before > v ? before : v;
      largest[i] = by;
    }
    next[i] = c.kept * current[i] - c.rate * m / (std::sqrt(by) * c.root_scale + c.eps);
  }
}

using Loop = void (*)(const Coefficients&, const Arrays&);

SLUICE_VECTOR_CLONES
void Plain(const Coefficients& c, const Arrays& a) {
  Step<false>(c, a.count, a.sum, a.current, a.mean, a.square, a.largest, a.next);
}
SLUICE_VECTOR_CLONES
void Amsgrad(const Coefficients& c, const Arrays& a) {
  Step<true>(c, a.count, a.sum, a.current, a.mean, a.square, a.largest, a.next);
}

struct Group {
  AdamOptions options;
  bool decoupled = false;  // AdamW's weight decay
};

Coefficients CoefficientsFor(const Group& group, const OptimizerStep& step, double learning_rate) {
  const AdamOptions& o = group.options;
  const auto t = static_cast<double>(step.number);
  Coefficients c;
  c.divisor = step.divisor;
  c.penalty = group.decoupled ? 0 : static_cast<float>(o.weight_decay);
  c.kept = group.decoupled ? static_cast<float>(1 - learning_rate * o.weight_decay) : 1;
  c.beta1 = static_cast<float>(o.beta1);
  c.fresh1 = static_cast<float>(1 - o.beta1);
  c.beta2 = static_cast<float>(o.beta2);
  c.fresh2 = static_cast<float>(1 - o.beta2);
  c.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t)));
  c.eps = static_cast<float>(o.eps);
  c.rate = static_cast<float>(learning_rate / (1 - std::pow(o.beta1, t)));
  return c;
}

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(std::vector<Group> groups, uint64_t size)
      : groups_(std::move(groups)),
        coefficients_(groups_.size()),
        mean_(FloatBuffer::Zeroed(size)),
        square_(FloatBuffer::Zeroed(size)) {
    const bool amsgrad = std::any_of(groups_.begin(), groups_.end(),
                                     [](const Group& group) { return group.options.amsgrad; });
    if (amsgrad) largest_ = FloatBuffer::Zeroed(size);
  }

  void Begin(const OptimizerStep& step) override {
    for (size_t i = 0; i < groups_.size(); ++i) {
      coefficients_[i] = CoefficientsFor(groups_[i], step, step.learning_rates[i]);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    const Loop loop = groups_[piece.group].options.amsgrad ? Amsgrad : Plain;
    loop(coefficients_[piece.group],
         {piece.next.size(), piece.sum.data(), piece.current.data(), mean_.from(piece.begin),
          square_.from(piece.begin), largest_.from(piece.begin), piece.next.data()});
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> slots = {{"exp_avg", mean_.span()}, {"exp_avg_sq", square_.span()}};
    if (largest_.size() > 0) slots.push_back({"max_exp_avg_sq", largest_.span()});
    return slots;
  }

 private:
  const std::vector<Group> groups_;
  std::vector<Coefficients> coefficients_;  // of each group, for the step under way
  FloatBuffer mean_;
  FloatBuffer square_;
  FloatBuffer largest_;  // empty if no group has amsgrad
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdamOptimizer(const std::vector<AdamOptions>& groups,
                                             uint64_t size) {
  std::vector<Group> all;
  for (const AdamOptions& group : groups) all.push_back({group, /*decoupled=*/false});
  return std::make_unique<AdamOptimizer>(std::move(all), size);
}

std::unique_ptr<Optimizer> MakeAdamWOptimizer(const std::vector<AdamWOptions>& groups,
                                              uint64_t size) {
  std::vector<Group> all;
  for (const AdamWOptions& o : groups) {
    all.push_back({{o.learning_rate, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad},
                   /*decoupled=*/true});
  }
  return std::make_unique<AdamOptimizer>(std::move(all), size);
}

}  // namespace sluice

#include "server/sgd_optimizer.h"

#include "server/float_buffer.h"
#include "server/vector_clones.h"

namespace sluice {
namespace {

struct Coefficients {
  float learning_rate;
  float momentum;
  float keep;  // 1 − dampening
  float weight_decay;
  float divisor;
};

// The four loops differ only in what the compiler may leave out.
template <bool kFirst, bool kNesterov>
void StepWithMomentum(const Coefficients& c, size_t count, const float* __restrict sum,
                      const float* __restrict current, float* __restrict momentum,
                      float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    const float d = sum[i] / c.divisor + c.weight_decay * current[i];
    const float b = kFirst ? d : c.momentum * momentum[i] + c.keep * d;
    momentum[i] = b;
    next[i] = current[i] - c.learning_rate * (kNesterov ? d + c.momentum * b : b);
  }
}

SLUICE_VECTOR_CLONES
void StepPlain(const Coefficients& c, size_t count, const float* __restrict sum,
               const float* __restrict current, float* __restrict next) {
  for (size_t i = 0; i < count; ++i) {
    next[i] = current[i] - c.learning_rate * (sum[i] / c.divisor + c.weight_decay * current[i]);
  }
}

using MomentumLoop = decltype(&StepWithMomentum<false, false>);

MomentumLoop ChooseLoop(bool first, bool nesterov) {
  if (first) return nesterov ? StepWithMomentum<true, true> : StepWithMomentum<true, false>;
  return nesterov ? StepWithMomentum<false, true> : StepWithMomentum<false, false>;
}

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(const SgdOptions& options, uint64_t size) : options_(options) {
    if (options_.momentum != 0) momentum_ = FloatBuffer(size);
  }

  void Apply(const OptimizerStep& step, uint64_t begin, absl::Span<const float> sum,
             absl::Span<const float> current, absl::Span<float> next) override {
    const Coefficients c = {step.learning_rate, static_cast<float>(options_.momentum),
                            static_cast<float>(1 - options_.dampening),
                            static_cast<float>(options_.weight_decay), step.divisor};
    if (options_.momentum == 0) {
      StepPlain(c, next.size(), sum.data(), current.data(), next.data());
      return;
    }
    const MomentumLoop loop = ChooseLoop(step.first, options_.nesterov);
    loop(c, next.size(), sum.data(), current.data(), momentum_.span().data() + begin, next.data());
  }

 private:
  const SgdOptions options_;
  FloatBuffer momentum_;  // empty if there is none
};

}  // namespace

std::unique_ptr<Optimizer> MakeSgdOptimizer(const SgdOptions& options, uint64_t size) {
  return std::make_unique<SgdOptimizer>(options, size);
}

}  // namespace sluice

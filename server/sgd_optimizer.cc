#include "server/sgd_optimizer.h"

#include <utility>

#include "server/vector_math.h"

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

}  // namespace

SgdOptimizer::SgdOptimizer(const SgdOptions& options, std::shared_ptr<const Layout> layout)
    : options_(options), layout_(std::move(layout)) {
  if (options_.momentum != 0) momentum_ = FloatBuffer(layout_->size());
}

void SgdOptimizer::Apply(absl::Span<const float> sum, float divisor,
                         absl::Span<const float> current, absl::Span<float> next) {
  const std::vector<LayoutRange>& ranges = layout_->ranges();
  // Neighbours of one kind go in one loop.
  for (size_t i = 0; i < ranges.size();) {
    const size_t begin = ranges[i].offset;
    const RangeKind kind = ranges[i].kind;
    while (i < ranges.size() && ranges[i].kind == kind) ++i;
    const size_t end = ranges[i - 1].end();
    if (kind == RangeKind::kParameter) {
      ApplyToParameters(begin, end, sum.data(), divisor, current.data(), next.data());
    } else {
      DivideTo(sum.subspan(begin, end - begin), divisor, next.subspan(begin, end - begin));
    }
  }
  first_step_ = false;
}

void SgdOptimizer::ApplyToParameters(size_t begin, size_t end, const float* sum, float divisor,
                                     const float* current, float* next) {
  const Coefficients c = {static_cast<float>(options_.learning_rate),
                          static_cast<float>(options_.momentum),
                          static_cast<float>(1 - options_.dampening),
                          static_cast<float>(options_.weight_decay), divisor};
  const size_t count = end - begin;
  if (options_.momentum == 0) {
    StepPlain(c, count, sum + begin, current + begin, next + begin);
    return;
  }
  const MomentumLoop loop = ChooseLoop(first_step_, options_.nesterov);
  loop(c, count, sum + begin, current + begin, momentum_.span().data() + begin, next + begin);
}

}  // namespace sluice

#include "worker/training/local_steps.h"

namespace sluice {
namespace {

constexpr double kOuterMomentum = 0.3;

}  // namespace

AveragingOptions AveragingOf(const LocalSteps& local) {
  const bool plain = local.every > 1 && local.elasticity == 1 && local.moving_rate == 1;
  return {local.moving_rate, local.outer_momentum.value_or(plain ? kOuterMomentum : 0), local.every,
          local.outer_nesterov};
}

}  // namespace sluice

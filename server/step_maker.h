// The arithmetic of a step: gradients are added up, reduced, clipped, and given to the optimizer.
//
// To be used by one thread at a time, which is never one that holds the shard's mutex.

#ifndef SLUICE_SERVER_STEP_MAKER_H_
#define SLUICE_SERVER_STEP_MAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/consistency.h"
#include "common/layout.h"
#include "common/optimizer_options.h"
#include "server/accumulator.h"
#include "server/optimizer.h"
#include "server/pending_push.h"

namespace sluice {

// Told that elements [0, end) of the next parameters are written.
using WriteProgress = std::function<void(uint64_t end)>;

// Externally synchronized.
class StepMaker {
 public:
  // `clip_norm` bounds the Euclidean norm of the reduced gradient, over all PARAMETER ranges, by
  // the formula of torch::nn::utils::clip_grad_norm_.
  StepMaker(const Layout& layout, const OptimizerOptions& options,
            absl::optional<double> clip_norm);

  // Adds a push of that staleness to the step, weighted as `consistency` says.
  void Add(const PendingPush& push, uint64_t staleness, const Consistency& consistency);

  // Makes `next` of `current` and what was added, which is then forgotten. If nothing was, they are
  // equal. PARAMETER ranges go through the optimizer; STATISTIC ranges become the mean of what was
  // pushed.
  void Make(Reduction reduction, double learning_rate, absl::Span<const float> current,
            absl::Span<float> next, const WriteProgress& progress = nullptr);

 private:
  struct Divisors {
    float parameters = 1;
    float statistics = 1;
  };

  Divisors DivisorsOf(Reduction reduction) const;
  void MakePart(const OptimizerStep& step, float statistics_divisor, uint64_t begin, uint64_t end,
                absl::Span<const float> current, absl::Span<float> next);

  const std::vector<KindRun> runs_;
  const absl::optional<double> clip_norm_;
  Accumulator accumulator_;
  const std::unique_ptr<Optimizer> optimizer_;
  uint64_t samples_ = 0;  // of what was added
  bool first_ = true;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STEP_MAKER_H_

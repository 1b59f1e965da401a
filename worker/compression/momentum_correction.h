// Applies momentum on the worker instead of on the server: momentum correction of Deep Gradient
// Compression (Lin et al. 2018), and momentum before signs are taken (Zheng, Huang and Kwok 2019,
// "Communication-Efficient Distributed Blockwise Momentum SGD with Error-Feedback").
//
// With error feedback, parts of a gradient are sent late. Momentum on the server would begin when
// they arrive, not when they were computed. So the worker adds momentum first, u ← m · u + g, and
// error feedback stores the sum of u less what was sent. Where a sparse encoding has sent an
// element, u becomes 0, so that an old direction is not followed twice (momentum factor masking).
// The server then has no momentum.

#ifndef SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_
#define SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/encoding/encoding_plan.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"

namespace sluice {

// Removes the momentum from the server's optimizer, and returns it. BAD_OPTIMIZER, which says what
// to change, unless the optimizer is SGD with one momentum for all groups and without Nesterov,
// dampening and weight decay, which need the momentum on the server. Momentum correction is for the
// vector only, so the tables of `layout` keep theirs: those without an optimizer of their own get
// the model's, with its momentum.
absl::StatusOr<float> TakeMomentum(const Layout& layout, OptimizerConfig* optimizer);

// Removes the momentum from changed options of a group. BAD_OPTIMIZER likewise, and unless it is
// `momentum`.
absl::Status TakeMomentum(float momentum, OptimizerOptions* options);

// If `:momentum` would help with this encoding and optimizer, a sentence with the flag to use;
// otherwise empty.
std::string AdviceOnMomentum(EncodingChoice choice, OptimizerConfig optimizer);

// GradientEncoder owns it. Externally synchronized.
class MomentumCorrection {
 public:
  // `size` is the number of elements; 0 if momentum is not corrected.
  MomentumCorrection(uint64_t size, float momentum)
      : momentum_(momentum), current_(size, 0.0f), next_(size, 0.0f) {}

  bool empty() const { return current_.empty(); }

  // Adds `gradient`, the elements from `begin` on, and returns u for them. Takes effect when
  // Commit() is called.
  absl::Span<const float> Advance(uint64_t begin, absl::Span<const float> gradient);

  // Sets u to 0 where an element was sent: where u + `before` differs from `after`. `before` and
  // `after` are what error feedback had stored before this push, and stores after it.
  void Mask(uint64_t begin, absl::Span<const float> before, absl::Span<const float> after);

  // The push counted. Without this call, the push changes nothing.
  void Commit() { current_.swap(next_); }

 private:
  const float momentum_;
  std::vector<float> current_;
  std::vector<float> next_;  // replaces current_ if the push counts
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_

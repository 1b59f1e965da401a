// A worker's own momentum: momentum correction of Deep Gradient Compression (Lin et al. 2018), and
// momentum before signs are taken (Zheng, Huang and Kwok 2019, "Communication-Efficient Distributed
// Blockwise Momentum SGD with Error-Feedback").
//
// Where parts of a gradient wait, momentum on the server would begin when they arrive, not when
// they were computed. So the worker adds momentum first, u ← m · u + g, and what waits is the sum
// of u less what was sent. What a sparse encoding has sent begins anew, with u = 0, lest an old
// direction be followed twice (momentum factor masking). The server has no momentum then.

#ifndef SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_
#define SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/encoding/encoding_plan.h"
#include "common/protocol/optimizer_config.h"

namespace sluice {

// Takes the momentum out of what the server is asked for, and returns it. BAD_OPTIMIZER, saying
// what to do, unless it is SGD with momentum, one for all groups, and without Nesterov, dampening
// and weight decay, to which momentum would not be applied any more.
absl::StatusOr<float> TakeMomentum(OptimizerConfig* optimizer);

// What to say to whoever pushes in an encoding that takes momentum, to a server that has it, though
// the worker could have it; empty if that is not so.
std::string AdviceOnMomentum(EncodingChoice choice, OptimizerConfig optimizer);

// Externally synchronized.
class MomentumCorrection {
 public:
  // Of a vector of that size. With size 0 it has nothing to do.
  MomentumCorrection(uint64_t size, float momentum)
      : momentum_(momentum), current_(size, 0.0f), next_(size, 0.0f) {}

  bool empty() const { return current_.empty(); }

  // What to send in place of `gradient`, elements from `begin` on, if the push counts.
  absl::Span<const float> Advance(uint64_t begin, absl::Span<const float> gradient);

  // Of what Advance() returned for these elements, with `before` added that was left over, `after`
  // is left over now: what differs was sent.
  void Mask(uint64_t begin, absl::Span<const float> before, absl::Span<const float> after);

  // The push counted. If it did not, all is as it was.
  void Commit() { current_.swap(next_); }

 private:
  const float momentum_;
  std::vector<float> current_;
  std::vector<float> next_;  // if the push counts, too
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_MOMENTUM_CORRECTION_H_

// A job whose workers report losses, and which learns, stays or diverges.

#ifndef SLUICE_TESTS_SERVER_SHARD_LEARNING_WORLD_H_
#define SLUICE_TESTS_SERVER_SHARD_LEARNING_WORLD_H_

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {

inline constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

inline ShardOptions Stopping(ShardOptions options) {
  options.guards.on_divergence = DivergenceAction::kStop;
  return options;
}

inline ShardOptions StoppingIfFlat(ShardOptions options) {
  options.guards.on_divergence = DivergenceAction::kStopIfFlat;
  return options;
}

inline ShardOptions SkippingNotFinite(ShardOptions options) {
  options.guards.skip_not_finite = true;
  return options;
}

// The workers are those that the world starts with: "a" alone, unless told otherwise.
class LearningWorld : public ShardWorld {
 public:
  explicit LearningWorld(const ShardOptions& options,
                         const std::vector<std::string>& workers = {"a"})
      : ShardWorld(options) {
    Start(workers);
  }

  absl::StatusOr<PushOutcome> PushLossOf(const std::string& worker, absl::optional<float> loss,
                                         const Values& gradient = {0, 0, 0}) {
    PushHeader header = NextHeader(worker, step());
    header.loss = loss;
    return PushAs(header, gradient);
  }
  absl::StatusOr<PushOutcome> PushLoss(absl::optional<float> loss,
                                       const Values& gradient = {0, 0, 0}) {
    return PushLossOf("a", loss, gradient);
  }
  void PushLosses(int count, float loss) {
    for (int i = 0; i < count; ++i) EXPECT_THAT(PushLoss(loss), IsOk());
  }
  // The loss falls to 0.3 and then, from step 501 on, rises for as long as a verdict takes.
  void Diverge() {
    PushLosses(100, 2.3F);
    PushLosses(400, 0.3F);
    PushLosses(147, 7);
  }
  std::vector<TrainingWarning> Warnings() { return shard().Describe().warnings; }
  bool Diverged() { return shard().Describe().diverged; }
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_SHARD_LEARNING_WORLD_H_

// A StepExecutor and the parameters that it updates:
//
//   StepWorld world(ParametersOnly(1));
//   world.Add({2});
//   EXPECT_THAT(world.Make(0.5), ElementsAre(-1));

#ifndef SLUICE_TESTS_TESTING_SHARD_STEP_WORLD_H_
#define SLUICE_TESTS_TESTING_SHARD_STEP_WORLD_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "gtest/gtest.h"
#include "server/aggregation/step_executor.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {

// By default a step subtracts the reduced gradient.
class StepWorld {
 public:
  explicit StepWorld(const Layout& layout, absl::optional<double> clip_norm = absl::nullopt,
                     const OptimizerConfig& optimizer = {SgdOptions()},
                     std::unique_ptr<Parallel> parallel = std::make_unique<Serial>())
      : layout_(std::make_shared<const Layout>(layout)),
        parallel_(std::move(parallel)),
        groups_(optimizer.groups.size()),
        clip_norm_(clip_norm),
        executor_(layout, optimizer, *parallel_),
        parameters_(layout.size()) {}

  void Add(const Values& gradient, uint32_t samples = 1, uint64_t staleness = 0) {
    executor_.Add(ContributionOf(gradient, samples, staleness), Terms({}));
  }

  // Keeps a gradient that is not added before the next step: Make() passes it to the StepExecutor,
  // which adds it while it makes the step.
  void Keep(const Values& gradient, uint32_t samples = 1, uint64_t staleness = 0) {
    last_ = ContributionOf(gradient, samples, staleness);
  }

  // Makes a step, in which all groups have this learning rate. Returns the new parameters, or the
  // old ones if the step was not made.
  const Values& Make(double learning_rate = 1, const WriteProgress& progress = nullptr) {
    return Make(std::vector<double>(groups_ + 1, learning_rate), progress);
  }

  // The same with several rates: the first is for the parameters that are in no group, the others
  // are for the groups.
  const Values& Make(const std::vector<double>& learning_rates,
                     const WriteProgress& progress = nullptr) {
    next_.assign(parameters_.size(), kUnwritten);
    bad_ = executor_.Make(Terms(learning_rates), last_.has_value() ? &*last_ : nullptr,
                          {parameters_, absl::MakeSpan(next_), progress, &checksum_});
    executor_.Clear();
    last_.reset();
    if (!bad_.has_value()) parameters_ = next_;
    return parameters_;
  }

  // The parameters after the latest step; before the first step, zeros or what set_parameters()
  // set.
  const Values& parameters() const { return parameters_; }
  void set_parameters(const Values& parameters) { parameters_ = parameters; }
  // While Make() runs, for `progress`: the new parameters. Elements that are not written yet are
  // kUnwritten.
  const Values& next() const { return next_; }
  // The checksum of the latest step.
  uint64_t checksum() const { return checksum_; }

  // The result of the latest Make(): if the step was not made, the index of the first element that
  // would not be finite.
  const absl::optional<uint64_t>& bad() const { return bad_; }

  StepExecutor& executor() { return executor_; }

  static constexpr float kUnwritten = 4711;
  Consistency consistency;
  // The rules for stale gradients that are in use; see StepTerms.
  bool gap_aware = false;
  bool ordered_momentum = false;
  uint32_t workers = 1;

 private:
  StepTerms Terms(const std::vector<double>& learning_rates) const {
    StepTerms terms;
    terms.consistency = consistency;
    terms.learning_rates = learning_rates;
    terms.clip_norm = clip_norm_;
    terms.gap_aware = gap_aware;
    terms.ordered_momentum = ordered_momentum;
    terms.workers = workers;
    return terms;
  }
  Contribution ContributionOf(const Values& gradient, uint32_t samples, uint64_t staleness) const {
    PushHeader header;
    header.samples = samples;
    Contribution contribution;
    contribution.push = std::make_unique<PendingPush>(header, layout_);
    contribution.staleness = staleness;
    EXPECT_THAT(contribution.push->Add(ChunkOf(0, gradient)), IsOk());
    contribution.push->Seal();
    return contribution;
  }

  const std::shared_ptr<const Layout> layout_;
  const std::unique_ptr<Parallel> parallel_;
  const size_t groups_;
  const absl::optional<double> clip_norm_;
  StepExecutor executor_;
  absl::optional<Contribution> last_;
  absl::optional<uint64_t> bad_;
  Values parameters_;
  Values next_;
  uint64_t checksum_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_STEP_WORLD_H_

// A StepDirector, the only stripe of its vector, and the parameters that they update:
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
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "common/tensor/stripes.h"
#include "gtest/gtest.h"
#include "server/aggregation/staged_vector.h"
#include "server/aggregation/step_director.h"
#include "server/aggregation/stripe_executor.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {

// The element that a step without tables would make NaN or infinite.
inline absl::optional<uint64_t> ElementOf(const absl::optional<BadNumber>& bad) {
  return bad.has_value() ? absl::make_optional(bad->element) : absl::nullopt;
}

// Makes a step on the only stripe, of the gradients that both know, and clears both. Returns what
// StepDirector::Make() does.
inline absl::optional<uint64_t> MakeOn(StripeExecutor& stripe, StepDirector& director,
                                       const StepTerms& terms, const StepVectors& vectors) {
  const auto bad = director.Make(terms, [&](const StepOrder& order) {
    return std::vector<StripeReport>{stripe.Carry(order, vectors)};
  });
  stripe.Clear();
  director.Clear();
  return ElementOf(bad);
}

// A push's header, with only the fields that a StepDirector reads.
inline PushHeader HeaderOf(uint32_t samples, const RunningMeans& means = {}) {
  PushHeader header;
  header.samples = samples;
  if (!means.empty()) header.running_means = std::make_shared<const RunningMeans>(means);
  return header;
}

// By default a step subtracts the reduced gradient.
class StepWorld {
 public:
  explicit StepWorld(const Layout& layout, absl::optional<double> clip_norm = absl::nullopt,
                     const OptimizerConfig& optimizer = {SgdOptions()},
                     std::unique_ptr<Parallel> parallel = std::make_unique<Serial>(),
                     std::unique_ptr<ProgramOptimizer> program = nullptr)
      : layout_(std::make_shared<const Layout>(layout)),
        parallel_(std::move(parallel)),
        groups_(optimizer.groups.size()),
        clip_norm_(clip_norm),
        director_(layout, optimizer, Stripes(layout.size(), 1)),
        executor_(layout, optimizer, Stripes(layout.size(), 1), 0, *parallel_, std::move(program)),
        parameters_(layout.size()) {}

  void Add(const Values& gradient, uint32_t samples = 1, uint64_t staleness = 0,
           const RunningMeans& means = {}) {
    const std::unique_ptr<StagedVector> staged = Staged(gradient);
    executor_.Add({staged.get(), director_.Count(HeaderOf(samples, means), staleness, Terms({}))});
  }

  // Keeps a gradient, the last of its step, which is added while the step is made.
  void Keep(const Values& gradient, uint32_t samples = 1, uint64_t staleness = 0,
            const RunningMeans& means = {}) {
    last_ = Staged(gradient);
    executor_.Keep({last_.get(), director_.Count(HeaderOf(samples, means), staleness, Terms({}))});
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
    checksum_ = 0;
    const StepVectors vectors = {parameters_, absl::MakeSpan(next_), progress, &checksum_};
    bad_ = MakeOn(executor_, director_, Terms(learning_rates), vectors);
    last_ = nullptr;
    parameters_ = next_;
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

  // What StepDirector::Make() returned last: if the step was abandoned, the first element that
  // would not be finite.
  const absl::optional<uint64_t>& bad() const { return bad_; }

  const StepDirector& director() const { return director_; }
  StripeExecutor& executor() { return executor_; }
  // The slots were written, as if the optimizer had made that many steps.
  void set_optimizer_steps(uint64_t steps) {
    executor_.set_optimizer_steps(steps);
    director_.NoteRestored();
  }

  static constexpr float kUnwritten = 4711;
  Consistency consistency;
  // The rules for stale gradients that are in use; see StepTerms.
  bool gap_aware = false;
  bool ordered_momentum = false;
  uint32_t workers = 1;
  double momentum_divisor = 1;

 private:
  StepTerms Terms(const std::vector<double>& learning_rates) const {
    StepTerms terms;
    terms.consistency = consistency;
    terms.learning_rates = learning_rates;
    terms.clip_norm = clip_norm_;
    terms.gap_aware = gap_aware;
    terms.ordered_momentum = ordered_momentum;
    terms.workers = workers;
    terms.momentum_divisor = momentum_divisor;
    return terms;
  }
  std::unique_ptr<StagedVector> Staged(const Values& gradient) const {
    auto staged = std::make_unique<StagedVector>(layout_);
    EXPECT_THAT(staged->Add(ChunkOf(0, gradient)), IsOk());
    staged->Seal();
    return staged;
  }

  const std::shared_ptr<const Layout> layout_;
  const std::unique_ptr<Parallel> parallel_;
  const size_t groups_;
  const absl::optional<double> clip_norm_;
  StepDirector director_;
  StripeExecutor executor_;
  std::unique_ptr<StagedVector> last_;
  absl::optional<uint64_t> bad_;
  Values parameters_;
  Values next_;
  uint64_t checksum_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_STEP_WORLD_H_

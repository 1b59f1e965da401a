// Steps of a vector that is cut into stripes have the bits of steps of the whole vector: for every
// optimizer, with clipping, groups, statistics, weights, and the rules for stale gradients.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/parallel.h"
#include "common/tensor/stripes.h"
#include "common/tensor/vector_copy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/aggregation/step_director.h"
#include "server/aggregation/stripe_executor.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// A gradient, as its push describes it.
struct Gradient {
  Values values;
  uint32_t samples = 1;
  uint64_t staleness = 0;
  RunningMeans means = {};
};

// A director and as many stripes as there may be servers. The sums of several stripes lie in their
// next parameters, and that of a single one apart, as with a journal. Both have the same bits.
class StripedWorld {
 public:
  StripedWorld(const Layout& layout, const OptimizerConfig& optimizer, uint32_t count)
      : layout_(layout),
        stripes_(layout.size(), count),
        director_(layout, optimizer, stripes_),
        parameters_(count),
        next_(count) {
    for (uint32_t i = 0; i < count; ++i) {
      layouts_.push_back(std::make_shared<const Layout>(layout.OfStripe(stripes_, i)));
      executors_.push_back(
          std::make_unique<StripeExecutor>(layout, optimizer, stripes_, i, serial_));
      parameters_[i].resize(stripes_.SizeOf(i));
      next_[i].resize(stripes_.SizeOf(i));
    }
  }

  void SetParameters(const Values& whole) {
    for (uint32_t i = 0; i < stripes_.count(); ++i) parameters_[i] = StripeOf(whole, i);
  }

  // Makes a step of the gradients, of which the last is kept for last. Returns the parameters.
  Values Make(const std::vector<Gradient>& gradients, const StepTerms& terms) {
    for (size_t i = 0; i < gradients.size(); ++i)
      Add(gradients[i], terms, i + 1 == gradients.size());
    bad_ = ElementOf(
        director_.Make(terms, [this](const StepOrder& order) { return CarryOnAll(order); }));
    director_.Clear();
    for (const auto& executor : executors_) executor->Clear();
    staged_.clear();
    parameters_.swap(next_);
    return Whole();
  }

  // What the latest step's StepDirector::Make() returned.
  const absl::optional<uint64_t>& bad() const { return bad_; }
  const StepDirector& director() const { return director_; }

 private:
  void Add(const Gradient& gradient, const StepTerms& terms, bool last) {
    const GradientWeight weight =
        director_.Count(HeaderOf(gradient.samples, gradient.means), gradient.staleness, terms);
    for (uint32_t i = 0; i < stripes_.count(); ++i) {
      staged_.push_back(std::make_unique<StagedVector>(layouts_[i]));
      const Values part = StripeOf(gradient.values, i);
      if (!part.empty()) {
        EXPECT_THAT(staged_.back()->Add(ChunkOf(0, part)), IsOk());
      }
      staged_.back()->Seal();
      const Addend addend = {staged_.back().get(), weight};
      if (stripes_.count() > 1) executors_[i]->SumInto(absl::MakeSpan(next_[i]));
      last ? executors_[i]->Keep(addend) : executors_[i]->Add(addend);
    }
  }

  std::vector<StripeReport> CarryOnAll(const StepOrder& order) {
    std::vector<StripeReport> reports;
    for (uint32_t i = 0; i < stripes_.count(); ++i) {
      reports.push_back(
          executors_[i]->Carry(order, {parameters_[i], absl::MakeSpan(next_[i]), nullptr}));
    }
    return reports;
  }

  Values StripeOf(const Values& whole, uint32_t stripe) const {
    Values part(stripes_.SizeOf(stripe));
    for (uint64_t i = 0; i < part.size(); ++i) part[i] = whole[stripes_.InVector(stripe, i)];
    return part;
  }

  Values Whole() const {
    Values whole(stripes_.size());
    for (uint32_t s = 0; s < stripes_.count(); ++s) {
      for (uint64_t i = 0; i < parameters_[s].size(); ++i) {
        whole[stripes_.InVector(s, i)] = parameters_[s][i];
      }
    }
    return whole;
  }

  const Layout layout_;
  const Stripes stripes_;
  Serial serial_;
  StepDirector director_;
  absl::optional<uint64_t> bad_;
  std::vector<std::shared_ptr<const Layout>> layouts_;
  std::vector<std::unique_ptr<StripeExecutor>> executors_;
  std::vector<std::unique_ptr<StagedVector>> staged_;
  std::vector<Values> parameters_;
  std::vector<Values> next_;
};

// Tensors of odd sizes, larger and smaller than a unit, and statistics between them.
Layout Odd(uint32_t scale) {
  return LayoutOf({{"conv", 300 * scale + 1},
                   {"mean", 7 * scale, RangeKind::kStatistic},
                   {"bias", 3},
                   {"fc", 500 * scale + 5},
                   {"var", 70, RangeKind::kStatistic},
                   {"head", 11 * scale}});
}

// One range has them in its middle only.
RunningMeans RunningMeansOf(const Layout& layout) {
  const LayoutRange& mean = *layout.Find("mean");
  const LayoutRange& var = *layout.Find("var");
  return {{mean.offset, mean.end(), 0.9f}, {var.offset + 3, var.end() - 2, 0.7f}};
}

class Numbers {
 public:
  Values Vector(uint64_t size) {
    Values values(size);
    for (float& value : values) value = normal_(engine_);
    return values;
  }
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }

 private:
  std::mt19937 engine_{7};
  std::normal_distribution<float> normal_;
};

struct Job {
  std::string name;
  OptimizerConfig optimizer;
  StepTerms terms;
};

// Every optimizer, with a group, and alternately with the rules that need the whole vector.
std::vector<Job> Jobs() {
  std::vector<Job> jobs;
  for (const OptimizerOptions& options : AllOptimizers()) {
    if (IsOfProgram(options)) continue;
    Job job;
    job.name = std::string(OptimizerName(options)) + std::to_string(jobs.size());
    job.optimizer.options = options;
    job.terms.learning_rates = {0.05};
    if (!WorkersStep(options)) {
      job.optimizer.groups.push_back({{"bias", "head"}, options});
      job.terms.learning_rates.push_back(0.01);
    }
    jobs.push_back(job);
    job.name += "_clipped";
    job.terms.clip_norm = 0.3;
    job.terms.consistency.reduction = Reduction::kWeightedMean;
    jobs.push_back(job);
  }
  Job stale;
  stale.name = "stale";
  SgdOptions momentum;
  momentum.momentum = 0.9;
  stale.optimizer.options = momentum;
  stale.terms.learning_rates = {0.05};
  stale.terms.gap_aware = stale.terms.ordered_momentum = true;
  stale.terms.workers = 3;
  jobs.push_back(stale);
  stale.name = "stale_adam";
  stale.optimizer.options = AdamOptions();
  stale.terms.ordered_momentum = false;
  stale.terms.consistency.discount_stale = true;
  stale.terms.momentum_divisor = 3;
  jobs.push_back(stale);
  stale.name = "changed_adam";
  AdamOptions changed;
  changed.beta1 = 0.5;
  changed.weight_decay = 0.1;
  stale.terms.changed = ShareOptions({{0, changed}});
  jobs.push_back(stale);
  return jobs;
}

class StripedStepTest : public ::testing::TestWithParam<Job> {};

TEST_P(StripedStepTest, HasTheSameBitsWithAnyNumberOfStripes) {
  for (const uint32_t scale : {1, 20}) {
    const Layout layout = Odd(scale);
    for (const uint32_t count : {2, 5, 40}) {
      Numbers numbers;
      StripedWorld one(layout, GetParam().optimizer, 1);
      StripedWorld many(layout, GetParam().optimizer, count);
      const Values start = numbers.Vector(layout.size());
      one.SetParameters(start);
      many.SetParameters(start);
      for (int step = 0; step < 4; ++step) {
        std::vector<Gradient> gradients(numbers.Below(3) + (step > 0 ? 0 : 1));
        for (Gradient& gradient : gradients) {
          gradient = {numbers.Vector(layout.size()), 1 + numbers.Below(64), numbers.Below(3)};
          if (numbers.Below(2) == 0) gradient.means = RunningMeansOf(layout);
        }
        ASSERT_TRUE(one.Make(gradients, GetParam().terms) == many.Make(gradients, GetParam().terms))
            << count << " stripes, step " << step;
        ASSERT_EQ(one.bad(), absl::nullopt);
        ASSERT_EQ(one.director().norms().after, many.director().norms().after);
        ASSERT_EQ(one.director().terms().learning_rates, many.director().terms().learning_rates);
      }
    }
  }
}

// One of the gradients is so large that two elements, in different stripes, overflow.
TEST_P(StripedStepTest, IsMadeOnAllStripesOrOnNone) {
  const Layout layout = Odd(20);
  for (const uint32_t count : {1, 2, 5}) {
    Numbers numbers;
    StripedWorld world(layout, GetParam().optimizer, count);
    const Gradient good = {numbers.Vector(layout.size()), 1, 0};
    const Values before = world.Make({good}, GetParam().terms);
    Gradient bad = good;
    for (const uint64_t at : {12'001, 9'003}) bad.values[at] = 3e38f;
    const Values after = world.Make({bad, bad}, GetParam().terms);
    EXPECT_EQ(world.bad(), 9'003u) << count;
    EXPECT_TRUE(after == before) << count;
    StripedWorld other(layout, GetParam().optimizer, 1);
    other.Make({good}, GetParam().terms);
    StepTerms plain = GetParam().terms;
    plain.gap_aware = plain.ordered_momentum = false;  // they count the step that was not made
    EXPECT_TRUE(world.Make({good}, plain) == other.Make({good}, plain)) << count;
  }
}

// Their parameters are written past the cache.
TEST(LargeStripesTest, HaveTheSameBits) {
  const Layout layout = Odd(5'300);
  ASSERT_GE(Stripes(layout.size(), 2).SizeOf(1), kStreamedElements);
  SgdOptions momentum;
  momentum.momentum = 0.9;
  for (const OptimizerOptions& options :
       {OptimizerOptions(momentum), OptimizerOptions(LambOptions())}) {
    StepTerms terms;
    terms.learning_rates = {0.05};
    Numbers numbers;
    StripedWorld one(layout, {options}, 1);
    StripedWorld two(layout, {options}, 2);
    std::vector<Gradient> gradients(3);
    for (Gradient& gradient : gradients) gradient.values = numbers.Vector(layout.size());
    ASSERT_TRUE(one.Make(gradients, terms) == two.Make(gradients, terms));
    terms.clip_norm = 0.3;
    ASSERT_TRUE(one.Make(gradients, terms) == two.Make(gradients, terms));
    for (Gradient& gradient : gradients) gradient.values[4'000'000] = 3e38f;
    const Values left_out = one.Make(gradients, terms);
    ASSERT_TRUE(one.bad().has_value());
    ASSERT_TRUE(left_out == two.Make(gradients, terms));
  }
}

INSTANTIATE_TEST_SUITE_P(All, StripedStepTest, ::testing::ValuesIn(Jobs()),
                         [](const ::testing::TestParamInfo<Job>& info) { return info.param.name; });

}  // namespace
}  // namespace sluice

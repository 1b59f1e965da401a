// Every optimizer of the server, with every combination of its options, against torch::optim
// itself; LAMB, which torch::optim lacks, against its formula in torch's tensor operations.

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/protocol/optimizer_config.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/step_world.h"
#include "tests/testing/vectors.h"
#include "worker/torch/torch_optimizers.h"

namespace sluice {
namespace {

constexpr int kSteps = 100;
constexpr int kWorkers = 3;  // whose gradients the server adds up
constexpr uint32_t kWeights = 700;
constexpr uint32_t kBiases = 300;

// Both sides compute in float32 and round each new parameter once, by at most 2^-24 of it; what is
// added to it is a small part of it, and so are its own ten or so roundings. LibTorch may also fuse
// a product with an addition. If all these errors of all steps pointed one way, they would come to
// this much, relative to the largest parameter; in fact they mostly cancel.
constexpr double kBound = 2.0 * kSteps / (1 << 24);

class Weights : public torch::nn::Module {
 public:
  Weights()
      : w(register_parameter("w", torch::randn({kWeights}))),
        b(register_parameter("b", torch::randn({kBiases}))) {}

  // Both, one after the other.
  Values values() const {
    const torch::Tensor all = torch::cat({w, b}).detach().contiguous();
    return Values(all.data_ptr<float>(), all.data_ptr<float>() + all.numel());
  }

  torch::Tensor w;
  torch::Tensor b;
};

Layout WeightsLayout() { return LayoutOf({{"w", kWeights}, {"b", kBiases}}); }

std::vector<double> LearningRatesOf(const OptimizerConfig& config) {
  std::vector<double> rates = {LearningRateOf(config.options)};
  for (const OptimizerGroup& group : config.groups) rates.push_back(LearningRateOf(group.options));
  return rates;
}

// Adds the gradients of some workers to the step, and gives `weights` their mean.
void AddGradients(StepWorld& world, Weights& weights) {
  torch::Tensor sum = torch::zeros({kWeights + kBiases});
  for (int worker = 0; worker < kWorkers; ++worker) {
    const torch::Tensor gradient = torch::randn({kWeights + kBiases});
    sum += gradient;
    world.Add({gradient.data_ptr<float>(), gradient.data_ptr<float>() + gradient.numel()});
  }
  const torch::Tensor mean = sum / kWorkers;
  weights.w.mutable_grad() = mean.slice(0, 0, kWeights);
  weights.b.mutable_grad() = mean.slice(0, kWeights);
}

// The largest difference of two vectors, relative to the second's largest element.
double RelativeDifference(const Values& ours, const Values& theirs) {
  const torch::Tensor expected = torch::tensor(theirs);
  const torch::Tensor difference = torch::tensor(ours) - expected;
  return (difference.abs().max() / expected.abs().max()).item<double>();
}

// ---- All combinations ----

// For each of `all`, itself and one changed by `change`.
template <typename Options, typename Change>
void Double(std::vector<Options>& all, const Change& change) {
  const std::vector<Options> before = all;
  for (Options options : before) {
    change(options);
    all.push_back(options);
  }
}

void Append(const std::vector<SgdOptions>& some, std::vector<OptimizerOptions>& all) {
  for (const SgdOptions& options : some) {
    if (Validate(options).ok()) all.push_back(options);
  }
}

template <typename Options>
void Append(const std::vector<Options>& some, std::vector<OptimizerOptions>& all) {
  all.insert(all.end(), some.begin(), some.end());
}

template <typename Options>
std::vector<Options> WithDecay() {
  Options options;
  options.learning_rate = 0.02;
  options.weight_decay = 0;
  std::vector<Options> all = {options};
  Double(all, [](Options& o) { o.weight_decay = 0.1; });
  return all;
}

template <typename Options>
std::vector<Options> AllOfAdam() {
  std::vector<Options> all = WithDecay<Options>();
  Double(all, [](Options& o) { o.amsgrad = true; });
  Double(all, [](Options& o) {
    o.beta1 = 0.5;
    o.beta2 = 0.7;  // so that AMSGrad's largest is not the latest
    o.eps = 0.01;
  });
  return all;
}

std::vector<OptimizerOptions> AllCombinations() {
  std::vector<OptimizerOptions> all;
  std::vector<SgdOptions> sgd = WithDecay<SgdOptions>();
  Double(sgd, [](SgdOptions& o) { o.momentum = 0.9; });
  Double(sgd, [](SgdOptions& o) { o.dampening = 0.3; });
  Double(sgd, [](SgdOptions& o) { o.nesterov = true; });
  Append(sgd, all);
  Append(AllOfAdam<AdamOptions>(), all);
  Append(AllOfAdam<AdamWOptions>(), all);
  std::vector<AdagradOptions> adagrad = WithDecay<AdagradOptions>();
  Double(adagrad, [](AdagradOptions& o) { o.lr_decay = 0.01; });
  Double(adagrad, [](AdagradOptions& o) { o.initial_accumulator_value = 0.5; });
  Append(adagrad, all);
  std::vector<RmsPropOptions> rmsprop = WithDecay<RmsPropOptions>();
  Double(rmsprop, [](RmsPropOptions& o) { o.centered = true; });
  Double(rmsprop, [](RmsPropOptions& o) { o.momentum = 0.5; });
  Double(rmsprop, [](RmsPropOptions& o) { o.alpha = 0.9; });
  Append(rmsprop, all);
  return all;
}

// The same for the whole model, or others for "b" alone.
OptimizerConfig ConfigWith(const OptimizerOptions& options, bool grouped) {
  OptimizerConfig config = {options};
  if (!grouped) return config;
  OptimizerGroup group = {{"b"}, options};
  std::visit(
      [](auto& own) {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (!std::is_same_v<Own, AveragingOptions> &&
                      !std::is_same_v<Own, MeanGradientOptions> &&
                      !std::is_same_v<Own, ProgramOptions>) {
          own.learning_rate *= 0.5;
          own.weight_decay = 0.05;
        }
      },
      group.options);
  config.groups.push_back(group);
  return config;
}

class OptimizersTorchTest : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

std::string NameOf(const ::testing::TestParamInfo<std::tuple<size_t, bool>>& info) {
  const auto [index, grouped] = info.param;
  const OptimizerOptions options = AllCombinations()[index];
  return absl::StrCat(OptimizerName(options), index, grouped ? "Grouped" : "");
}

TEST_P(OptimizersTorchTest, MakeOfAHundredStepsWhatTorchMakes) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const auto [index, grouped] = GetParam();
  const OptimizerConfig config = ConfigWith(AllCombinations()[index], grouped);
  Weights weights;
  StepWorld world(WeightsLayout(), absl::nullopt, config);
  world.set_parameters(weights.values());
  const auto theirs = MakeTorchOptimizer(config, weights);
  for (int step = 0; step < kSteps; ++step) {
    AddGradients(world, weights);
    world.Make(LearningRatesOf(config));
    theirs->step();
  }
  const double difference = RelativeDifference(world.parameters(), weights.values());
  RecordProperty("relative_difference", absl::StrCat(difference));
  EXPECT_LE(difference, kBound);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizersTorchTest,
                         ::testing::Combine(::testing::Range(size_t{0}, AllCombinations().size()),
                                            ::testing::Bool()),
                         NameOf);

TEST(OptimizersTorchCombinationsTest, AreThoseThatTorchAllows) {
  const Weights weights;
  for (const OptimizerOptions& options : AllCombinations()) {
    EXPECT_NO_THROW(MakeTorchOptimizer({options}, weights));
  }
  // Of SGD 2 momenta × 2 dampenings × 2 decays, and Nesterov for 1 momentum without dampening × 2
  // decays; of Adam and AdamW 2³ each, of Adagrad 2³, of RMSprop 2⁴.
  EXPECT_EQ(AllCombinations().size(), 10u + 8 + 8 + 8 + 16);
}

// ---- LAMB ----

// You et al. 2020, algorithm 2, for one tensor.
class LambByFormula {
 public:
  LambByFormula(const torch::Tensor& parameter, const LambOptions& options)
      : parameter_(parameter),
        options_(options),
        m_(torch::zeros_like(parameter)),
        v_(torch::zeros_like(parameter)) {}

  void Step(const torch::Tensor& gradient) {
    const torch::NoGradGuard no_grad;
    const LambOptions& o = options_;
    ++t_;
    m_ = o.beta1 * m_ + (1 - o.beta1) * gradient;
    v_ = o.beta2 * v_ + (1 - o.beta2) * gradient * gradient;
    const torch::Tensor mean = m_ / (1 - std::pow(o.beta1, t_));
    const torch::Tensor square = v_ / (1 - std::pow(o.beta2, t_));
    const torch::Tensor update = mean / (square.sqrt() + o.eps) + o.weight_decay * parameter_;
    const double ratio = (parameter_.norm() / update.norm()).item<double>();
    parameter_ -= o.learning_rate * ratio * update;
  }

 private:
  torch::Tensor parameter_;
  const LambOptions options_;
  torch::Tensor m_;
  torch::Tensor v_;
  int t_ = 0;
};

TEST(LambTorchTest, MakesOfAHundredStepsWhatThePapersFormulaMakes) {
  torch::set_num_threads(1);
  for (LambOptions options : WithDecay<LambOptions>()) {
    for (const bool grouped : {false, true}) {
      torch::manual_seed(1);
      const OptimizerConfig config = ConfigWith(options, grouped);
      Weights weights;
      StepWorld world(WeightsLayout(), absl::nullopt, config);
      world.set_parameters(weights.values());
      const OptimizerOptions of_b = grouped ? config.groups[0].options : config.options;
      LambByFormula w(weights.w, options);
      LambByFormula b(weights.b, std::get<LambOptions>(of_b));
      for (int step = 0; step < kSteps; ++step) {
        AddGradients(world, weights);
        world.Make(LearningRatesOf(config));
        w.Step(weights.w.grad());
        b.Step(weights.b.grad());
      }
      EXPECT_LE(RelativeDifference(world.parameters(), weights.values()), kBound);
    }
  }
}

}  // namespace
}  // namespace sluice

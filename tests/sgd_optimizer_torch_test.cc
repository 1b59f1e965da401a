// The server's optimizer against torch::optim::SGD itself.

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "common/optimizer_options.h"
#include "gtest/gtest.h"
#include "server/sgd_optimizer.h"

namespace sluice {
namespace {

constexpr int kSteps = 100;
constexpr int64_t kElements = 1000;
constexpr float kWorkers = 3;  // whose sum the server divides by

// Both sides compute in float32 and round each new parameter once, by at most 2^-24 of it; what is
// added to it is a small part of it, and so are its roundings. LibTorch may also fuse a product
// with an addition. If all these errors of all steps pointed one way, they would come to this much,
// relative to the largest parameter; in fact they mostly cancel.
constexpr double kBound = 2.0 * kSteps / (1 << 24);

std::vector<SgdOptions> AllCombinations() {
  std::vector<SgdOptions> all;
  for (const double momentum : {0.0, 0.9}) {
    for (const double dampening : {0.0, 0.3}) {
      for (const double weight_decay : {0.0, 0.01}) {
        for (const bool nesterov : {false, true}) {
          SgdOptions options;
          options.learning_rate = 0.05;
          options.momentum = momentum;
          options.dampening = dampening;
          options.weight_decay = weight_decay;
          options.nesterov = nesterov;
          if (options.Validate().ok()) all.push_back(options);
        }
      }
    }
  }
  return all;
}

torch::optim::SGDOptions ToTorch(const SgdOptions& options) {
  return torch::optim::SGDOptions(options.learning_rate)
      .momentum(options.momentum)
      .dampening(options.dampening)
      .weight_decay(options.weight_decay)
      .nesterov(options.nesterov);
}

absl::Span<float> SpanOf(const torch::Tensor& vector) {
  return absl::MakeSpan(vector.data_ptr<float>(), static_cast<size_t>(vector.numel()));
}

std::string NameOf(const ::testing::TestParamInfo<SgdOptions>& info) {
  const SgdOptions& o = info.param;
  return absl::StrReplaceAll(absl::StrCat("Momentum", o.momentum, "Dampening", o.dampening, "Decay",
                                          o.weight_decay, o.nesterov ? "Nesterov" : ""),
                             {{".", "p"}});
}

class SgdOptimizerTorchTest : public ::testing::TestWithParam<SgdOptions> {};

TEST_P(SgdOptimizerTorchTest, MakesOfAHundredStepsWhatTorchMakes) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  torch::Tensor current = torch::randn({kElements});
  torch::Tensor next = torch::empty_like(current);
  const auto ours = MakeSgdOptimizer({GetParam()}, kElements);
  OptimizerStep ours_step;
  ours_step.divisor = kWorkers;
  ours_step.learning_rates = {GetParam().learning_rate};
  torch::Tensor parameter = current.clone().requires_grad_();
  torch::optim::SGD theirs({parameter}, ToTorch(GetParam()));
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor sum = kWorkers * torch::randn({kElements});
    ours_step.number = step + 1;
    ours->Begin(ours_step);
    ours->Apply({0, 0, SpanOf(sum), SpanOf(current), SpanOf(next)});
    std::swap(current, next);
    parameter.mutable_grad() = sum / kWorkers;
    theirs.step();
  }
  const torch::Tensor expected = parameter.detach();
  const auto difference = ((current - expected).abs().max() / expected.abs().max()).item<double>();
  RecordProperty("relative_difference", absl::StrCat(difference));
  EXPECT_LE(difference, kBound);
}

INSTANTIATE_TEST_SUITE_P(All, SgdOptimizerTorchTest, ::testing::ValuesIn(AllCombinations()),
                         NameOf);

TEST(SgdOptimizerTorchCombinationsTest, AreThoseThatTorchAllows) {
  std::vector<torch::Tensor> parameters = {torch::zeros({1}).requires_grad_()};
  for (const SgdOptions& options : AllCombinations()) {
    EXPECT_NO_THROW(torch::optim::SGD(parameters, ToTorch(options)));
  }
  // 2 momenta × 2 dampenings × 2 decays, and Nesterov for 1 momentum without dampening × 2 decays.
  EXPECT_EQ(AllCombinations().size(), 10u);
}

}  // namespace
}  // namespace sluice

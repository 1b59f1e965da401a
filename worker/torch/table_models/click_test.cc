#include "worker/torch/table_models/click_test.h"

#include <torch/torch.h>

namespace sluice {

double AreaUnderCurve(const torch::Tensor& odds, const torch::Tensor& clicks) {
  const torch::Tensor ranks = odds.argsort().argsort().to(torch::kFloat64) + 1;
  const torch::Tensor clicked = clicks.to(torch::kFloat64);
  const auto with = clicked.sum().item<double>();
  const double without = static_cast<double>(odds.numel()) - with;
  return ((ranks * clicked).sum().item<double>() - with * (with + 1) / 2) / (with * without);
}

TestResult TestOfClicks(const torch::Tensor& odds, const torch::Tensor& clicks) {
  const auto loss = torch::binary_cross_entropy_with_logits(odds, clicks).item<double>();
  const std::string name = "area under curve";
  return {odds.numel(), loss, {{name, name, AreaUnderCurve(odds, clicks)}}};
}

}  // namespace sluice

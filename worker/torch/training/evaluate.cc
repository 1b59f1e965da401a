#include "worker/torch/training/evaluate.h"

#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "worker/data/batch.h"
#include "worker/torch/training/batch_tensors.h"

namespace sluice {
namespace {

constexpr int64_t kBatch = 500;
constexpr int64_t kMostElements = int64_t{1} << 24;  // of a batch, unless one sample has more

// How many classes are ahead of each sample's label.
torch::Tensor RanksOf(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor label = labels.unsqueeze(1);
  const torch::Tensor own = logits.gather(1, label);
  // Not "larger", so that NaN is ahead.
  const torch::Tensor larger = (logits <= own).logical_not();
  const torch::Tensor first = torch::arange(logits.size(1)).unsqueeze(0) < label;
  return larger.logical_or(logits.eq(own).logical_and(first)).sum(1);
}

}  // namespace

Evaluation SumsOf(const torch::Tensor& logits, const torch::Tensor& labels) {
  namespace F = torch::nn::functional;
  const auto sum = F::CrossEntropyFuncOptions().reduction(torch::kSum);
  const torch::Tensor ranks = RanksOf(logits, labels);
  Evaluation sums;
  sums.samples = labels.size(0);
  sums.loss = F::cross_entropy(logits.to(torch::kFloat64), labels, sum).item<double>();
  sums.top1 = static_cast<double>(ranks.lt(1).sum().item<int64_t>());
  sums.top5 = static_cast<double>(ranks.lt(5).sum().item<int64_t>());
  return sums;
}

Evaluation Evaluate(Classifier& model, const Dataset& data, const EvaluationListener& listener) {
  const torch::NoGradGuard no_grad;
  model.eval();
  const int64_t batch_size =
      std::max<int64_t>(1, std::min(kBatch, kMostElements / data.form.elements()));
  Evaluation all;
  while (all.samples < data.size()) {
    std::vector<int64_t> rows(std::min(batch_size, data.size() - all.samples));
    std::iota(rows.begin(), rows.end(), all.samples);
    const BatchTensors batch = TensorsOf(MakeBatch(data, rows));
    const Evaluation sums = SumsOf(model.forward(batch.inputs), batch.labels);
    all.samples += sums.samples;
    all.loss += sums.loss;
    all.top1 += sums.top1;
    all.top5 += sums.top5;
    if (listener != nullptr) listener(all.samples);
  }
  const auto samples = static_cast<double>(all.samples);
  return {all.samples, all.loss / samples, all.top1 / samples, all.top5 / samples};
}

}  // namespace sluice

#include "worker/training/evaluation.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace sluice {

TestResult ResultOf(const Evaluation& evaluation) {
  return {evaluation.samples,
          evaluation.loss,
          {{"accuracy", "top-1", evaluation.top1}, {"top-5 accuracy", "top-5", evaluation.top5}}};
}

Results ResultsOf(const TestResult& result) {
  Results results;
  if (std::isfinite(result.loss)) results["test loss"] = result.loss;
  for (const Metric& metric : result.metrics) {
    if (std::isfinite(metric.value)) results[absl::StrCat("test ", metric.name)] = metric.value;
  }
  return results;
}

}  // namespace sluice

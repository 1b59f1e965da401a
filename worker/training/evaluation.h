#ifndef SLUICE_WORKER_TRAINING_EVALUATION_H_
#define SLUICE_WORKER_TRAINING_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/protocol/results.h"

namespace sluice {

// A number that says how good a model is; larger is better.
struct Metric {
  std::string name;   // "accuracy": the server shows "test accuracy"
  std::string shown;  // "top-1": in lists of evaluations
  double value = 0;
};

// What a test of a model has shown, whatever kind of model it is.
struct TestResult {
  int64_t samples = 0;
  double loss = 0;              // mean over the samples
  std::vector<Metric> metrics;  // the first is what models are compared by; none: the loss is
};

// The accuracy with which a model classifies the samples of a data set. A sample counts towards
// top-k if fewer than k classes are ahead of its label. A class is ahead if its logit is larger, or
// equal and the class has a lower index. NaN is ahead of every other logit; a sample whose label's
// logit is NaN never counts.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;  // mean cross entropy in nats, summed in double precision; NaN if a logit is NaN
  double top1 = 0;  // share of the samples
  double top5 = 0;  // share of the samples
};

TestResult ResultOf(const Evaluation& evaluation);

// By the names that the server shows; only what is finite.
Results ResultsOf(const TestResult& result);

// Told after each batch how many samples are done.
using EvaluationListener = std::function<void(int64_t samples)>;

}  // namespace sluice

#endif  // SLUICE_WORKER_TRAINING_EVALUATION_H_

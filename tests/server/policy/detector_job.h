// A job whose steps and gradients a DivergenceDetector is told of, in order.

#ifndef SLUICE_TESTS_SERVER_POLICY_DETECTOR_JOB_H_
#define SLUICE_TESTS_SERVER_POLICY_DETECTOR_JOB_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "server/policy/divergence.h"

namespace sluice {

class DetectorJob {
 public:
  // Steps with that loss, each a round.
  DetectorJob& Steps(int count, absl::optional<double> loss, double norm = 1) {
    for (int i = 0; i < count; ++i) {
      StepReport report;
      report.step = step_ = step_.Next();
      report.loss = loss;
      report.norm_before = norm_;
      report.norm = norm_ = norm;
      report.rounds = rounds_;
      report.warms_up = warms_up_;
      detector_.OnStep(report);
    }
    return *this;
  }
  // Of four steps, only the first has a loss.
  DetectorJob& EveryFourth(int count, double loss, double norm = 1) {
    for (int i = 0; i < count; ++i) Steps(1, loss, norm).Steps(3, absl::nullopt, norm);
    return *this;
  }
  // Three of five losses are bad: too many to be fine, and too few for a verdict.
  DetectorJob& Swing(int times, double bad, double good) {
    for (int i = 0; i < times; ++i) Steps(3, bad).Steps(2, good);
    return *this;
  }
  // After that step, with parameters of that norm.
  DetectorJob& From(uint64_t step) {
    step_ = Step(step);
    return *this;
  }
  DetectorJob& Beginning(double norm) {
    norm_ = norm;
    return *this;
  }
  DetectorJob& WarmingUp(bool warms_up) {
    warms_up_ = warms_up;
    return *this;
  }
  // Each step is one gradient of so many workers.
  DetectorJob& OfWorkers(double workers) {
    rounds_ = 1 / workers;
    return *this;
  }
  // Gradients of the workers `first` to `last` in turn; each gives `rounds`.
  DetectorJob& Gradients(bool finite, int rounds, uint64_t first, uint64_t last, uint32_t workers) {
    for (int i = 0; i < rounds; ++i) {
      for (uint64_t worker = first; worker <= last; ++worker) {
        detector_.OnGradient(step_, SessionId(worker), finite, workers);
      }
    }
    return *this;
  }
  DetectorJob& NotFinite(int gradients) { return Gradients(false, gradients, 1, 1, 1); }
  DetectorJob& Finite(int gradients) { return Gradients(true, gradients, 1, 1, 1); }
  DetectorJob& Restored(const DetectorJob& earlier) {
    detector_.Restore(earlier.detector_.losses(), earlier.detector_.suspect_since());
    return From(earlier.step_.value());
  }

  bool fine() const { return !detector_.verdict().has_value(); }
  Divergence what() const { return detector_.verdict().value().what; }
  uint64_t since() const { return detector_.verdict().value().since.value(); }
  std::string seen() const { return detector_.verdict().value().seen; }
  // The first suspect step; 0 if there is none.
  uint64_t suspect_since() const { return detector_.suspect_since().value_or(Step()).value(); }

 private:
  DivergenceDetector detector_;
  Step step_;
  double norm_ = 1;
  double rounds_ = 1;
  bool warms_up_ = false;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_POLICY_DETECTOR_JOB_H_

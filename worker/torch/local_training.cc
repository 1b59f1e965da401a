#include "worker/torch/local_training.h"

#include <algorithm>
#include <utility>

#include "worker/torch/torch_optimizers.h"

namespace sluice {

LocalTraining::LocalTraining(const LocalSteps& options, const OptimizerConfig& config,
                             torch::nn::Module& module, FlatModel& model)
    : options_(options),
      config_(config),
      model_(model),
      optimizer_(MakeTorchOptimizer(config, module)) {
  const absl::Span<const float> values = model_.values();
  if (options_.elasticity != 1) centre_.assign(values.begin(), values.end());
}

bool LocalTraining::Step(uint32_t samples, double factor) {
  scheduled_ = scheduled_ || factor != 1;
  if (scheduled_) SetLearningRates(config_, factor, *optimizer_);
  optimizer_->step();
  samples_ += samples;
  return ++steps_ >= options_.every;
}

absl::StatusOr<RoundReport> LocalTraining::Push(ParameterClient& client,
                                                absl::optional<float> loss) {
  steps_ = 0;
  const uint32_t samples = std::exchange(samples_, 0);
  const absl::Span<float> values = model_.GatherValues();
  absl::StatusOr<RoundReport> report;
  if (centre_.empty()) {
    report = client.PushPull(model_.shared_values(), samples, loss, values);
  } else {
    const SharedFloats pushed = Share({values.begin(), values.end()});
    if (client.held().complete()) MoveTowardsCentre(values);
    report = client.PushPull(pushed, samples, loss, absl::MakeSpan(centre_));
    if (report.ok()) TakeStatistics(values);
  }
  if (report.ok()) model_.ScatterValues();
  return report;
}

void LocalTraining::MoveTowardsCentre(absl::Span<float> values) const {
  const auto rate = static_cast<float>(options_.elasticity);
  for (size_t i = 0; i < values.size(); ++i) values[i] -= rate * (values[i] - centre_[i]);
}

// Elastic averaging applies to parameters only. Every worker continues with the mean of the
// statistics.
void LocalTraining::TakeStatistics(absl::Span<float> values) const {
  for (const KindRun& run : model_.layout().Runs()) {
    if (run.kind == RangeKind::kParameter) continue;
    std::copy_n(centre_.begin() + static_cast<int64_t>(run.begin), run.end - run.begin,
                values.begin() + static_cast<int64_t>(run.begin));
  }
}

}  // namespace sluice

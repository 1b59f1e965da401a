// The oracle's model of a step: the list of gradients that count for it. The oracle computes the
// new parameters from that list.

#ifndef SLUICE_TESTS_SIMULATION_STEP_MODEL_H_
#define SLUICE_TESTS_SIMULATION_STEP_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "common/tensor/layout.h"
#include "common/tensor/running_means.h"
#include "tests/simulation/workers_model.h"
#include "tests/testing/vectors.h"

namespace sluice {

// A gradient that counts. If `skipped`, the gradient was not finite: it is not added, but its
// worker counts as having contributed.
struct ModelContribution {
  uint32_t index = 0;
  std::string worker;
  uint64_t process = 0;
  uint64_t session = 0;
  uint32_t samples = 1;
  uint64_t staleness = 0;
  bool skipped = false;
  Values gradient;
  std::shared_ptr<const RunningMeans> means = nullptr;  // of its push
  SharedOptions options = nullptr;                      // likewise

  ModelRank rank() const { return {index, worker}; }
};

using ModelSessions = absl::InlinedVector<uint64_t, 16>;

class StepModel {
 public:
  explicit StepModel(const Layout& layout) : layout_(layout) {}

  void Enter(ModelContribution contribution, absl::Time now);
  // Returns the parameters that this step makes of `current`. Then the next step begins: no
  // gradient counts for it yet.
  Values Apply(const Consistency& consistency, double learning_rate, const Values& current);

  uint32_t counted() const;
  uint32_t skipped() const { return static_cast<uint32_t>(entered_.size()) - counted(); }
  bool empty() const { return entered_.empty(); }
  // When the first gradient entered.
  absl::optional<absl::Time> since() const { return since_; }
  // Whether any process of the worker with that name has contributed.
  bool Has(const std::string& worker) const;
  bool HasProcess(uint64_t process) const;
  // With ReductionOrder::kRank: the sessions whose gradients wait until the gradient of
  // `first_missing` has been added.
  ModelSessions SessionsBehind(const ModelRank& first_missing) const;
  // Of the latest gradient of the lowest rank; null if there is none yet.
  const SharedOptions& options() const { return options_; }
  // With which the step before was made.
  const SharedOptions& latest_options() const { return latest_; }
  void set_latest_options(SharedOptions options) { latest_ = std::move(options); }
  // For each element: by how much rounding may change it from what Apply() returned last.
  const Values& tolerance() const { return tolerance_; }

 private:
  using ModelContributions = absl::InlinedVector<const ModelContribution*, 16>;

  ModelContributions InOrder(ReductionOrder order) const;
  float Element(const ModelContributions& gradients, size_t element, const Consistency& consistency,
                double learning_rate, float current);

  const Layout layout_;
  std::vector<ModelContribution> entered_;
  absl::optional<absl::Time> since_;
  absl::optional<std::pair<uint32_t, std::string>> lowest_;  // index and name
  SharedOptions options_, latest_;
  Values tolerance_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_STEP_MODEL_H_

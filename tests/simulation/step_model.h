// The oracle's model of a step: the list of gradients that count for it. The oracle computes the
// new parameters from that list.

#ifndef SLUICE_TESTS_SIMULATION_STEP_MODEL_H_
#define SLUICE_TESTS_SIMULATION_STEP_MODEL_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/tensor/layout.h"
#include "tests/simulation/workers_model.h"
#include "tests/testing/vectors.h"

namespace sluice {

// A gradient that counts, or, if it is left out for not being finite, its worker's place.
struct ModelContribution {
  ModelRank rank;
  uint64_t process = 0;
  uint64_t session = 0;
  uint32_t samples = 1;
  uint64_t staleness = 0;
  bool skipped = false;
  Values gradient;
};

class StepModel {
 public:
  explicit StepModel(const Layout& layout) : layout_(layout) {}

  void Enter(ModelContribution contribution, absl::Time now);
  // The parameters that this step makes of `current`; then the next step begins.
  Values Apply(const Consistency& consistency, double learning_rate, const Values& current);

  uint32_t counted() const;
  uint32_t skipped() const { return static_cast<uint32_t>(entered_.size()) - counted(); }
  bool empty() const { return entered_.empty(); }
  absl::optional<absl::Time> since() const { return since_; }
  // Whether a worker of that name has contributed, whichever its process.
  bool Has(const std::string& worker) const;
  std::set<std::string> Workers() const;
  bool HasProcess(uint64_t process) const;
  // The sessions of gradients that cannot be added before that of `first_missing`, if they are
  // added in the order of ranks.
  std::vector<uint64_t> SessionsBehind(const ModelRank& first_missing) const;
  // How far rounding may take the latest step's elements from what Apply returned.
  const Values& tolerance() const { return tolerance_; }

 private:
  std::vector<const ModelContribution*> InOrder(ReductionOrder order) const;
  float Element(const std::vector<const ModelContribution*>& gradients, size_t element,
                const Consistency& consistency, double learning_rate, float current);

  const Layout layout_;
  std::vector<ModelContribution> entered_;
  absl::optional<absl::Time> since_;
  Values tolerance_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_STEP_MODEL_H_

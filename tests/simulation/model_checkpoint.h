// The state that the oracle expects of a server that is started again from a checkpoint, and what
// the steps of journals add to it.

#ifndef SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_
#define SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_config.h"
#include "tests/simulation/workers_model.h"
#include "tests/testing/vectors.h"

namespace sluice {

struct ModelCheckpoint {
  uint64_t step = 0;
  std::map<uint64_t, uint64_t> incarnations;  // each with its last step of this history
  std::vector<Values> published;              // by step
  Consistency consistency;
  absl::optional<double> learning_rate;
  SharedOptions options;                       // of the workers' programs
  std::map<std::string, ModelWorker> workers;  // without their pushes of the step under way
  bool forgot = false;                         // the answers of a process that may return are gone
};

// A step that was made after a checkpoint, as a journal knows it.
struct ModelStep {
  uint64_t step = 0;  // that it reaches
  uint64_t incarnation = 0;
  Values parameters;
  Values tolerance;  // of the parameters; empty if they are exact
  Consistency consistency;
  absl::optional<double> learning_rate;
  SharedOptions options;  // of the workers' programs
  bool forgot = false;
  // Those whose pushes are part of it, after these, and with the answers to these only.
  std::map<std::string, ModelWorker> contributors;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_

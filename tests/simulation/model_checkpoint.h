// The state that the oracle expects of a server that is started again from a checkpoint.

#ifndef SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_
#define SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/consistency.h"
#include "tests/simulation/workers_model.h"
#include "tests/testing/vectors.h"

namespace sluice {

struct ModelCheckpoint {
  uint64_t step = 0;
  std::map<uint64_t, uint64_t> incarnations;  // each with its last step of this history
  std::vector<Values> published;              // by step
  Consistency consistency;
  absl::optional<double> learning_rate;
  std::map<std::string, ModelWorker> workers;  // without their pushes of the step under way
  bool forgot = false;                         // the answers of a process that may return are gone
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_MODEL_CHECKPOINT_H_

// The configuration of the job that a seed plays, drawn from all that are valid.

#ifndef SLUICE_TESTS_SIMULATION_SCENARIO_H_
#define SLUICE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>

#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"
#include "server/state/shard_status.h"
#include "tests/simulation/dice.h"

namespace sluice {

// Learning rates, and their factors, are powers of two: a product with one is exact, so that a step
// has one result whatever the compiler contracts.
struct Scenario {
  ShardOptions options;
  SgdOptions optimizer;
  Layout layout;
  uint32_t room = 3;     // gradients that may be on their way in
  uint32_t workers = 1;  // names of workers
  uint32_t events = 0;
  bool own_indices = false;  // the launcher gave each worker its place
  // Gradients whose sum in float depends on the order in which they are added.
  bool order_matters = false;
};

Scenario DrawScenario(Dice& dice);

// Any legal one for that many workers.
Consistency DrawConsistency(Dice& dice, uint32_t workers);

std::string Words(const Consistency& consistency);
std::string Words(const Scenario& scenario);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SCENARIO_H_

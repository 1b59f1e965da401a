// The configuration of the job that a seed plays. It is drawn from all valid configurations.

#ifndef SLUICE_TESTS_SIMULATION_SCENARIO_H_
#define SLUICE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>

#include "common/protocol/consistency.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/layout.h"
#include "server/state/shard_options.h"
#include "tests/simulation/dice.h"

namespace sluice {

// Learning rates and the factors of their schedules are powers of two. A product with a power of
// two is exact, so a step has the same result whether or not the compiler contracts a
// multiplication and an addition into one instruction.
struct Scenario {
  ShardOptions options;
  SgdOptions optimizer;
  Layout layout;
  uint32_t servers = 1;  // of the job
  bool journal = false;  // each server writes each step to its disk
  // No server has memory for all its rows.
  bool rows_on_disk = false;
  uint32_t sync_chance = 0;  // of each server in each event, in percent
  uint32_t link_seed = 0;    // of what happens to calls, messages and files of several servers
  uint32_t room = 3;         // the in-flight limit, in gradients
  uint32_t workers = 1;      // number of workers' names
  uint32_t events = 0;       // number of random events
  bool own_indices = false;  // the launcher gave each worker its place
  // The server's process is stopped now and then.
  bool stops = false;
  // Gradients are such that their sum in float depends on the order in which they are added.
  bool order_matters = false;

  // Whether checkpoints are files on the disks of servers, which are killed one by one.
  bool has_disks() const { return servers > 1 || journal; }
};

Scenario DrawScenario(Dice& dice, uint32_t servers);

// Draws any valid setting for the scenario's workers.
Consistency DrawConsistency(Dice& dice, const Scenario& scenario);

std::string Words(const Consistency& consistency);
std::string Words(const Scenario& scenario);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SCENARIO_H_

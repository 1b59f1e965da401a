// Checks liveness: once the disturbances have ended, the workers that are alive make progress,
// whatever state the others have left behind.

#ifndef SLUICE_TESTS_SIMULATION_CALM_H_
#define SLUICE_TESTS_SIMULATION_CALM_H_

#include "tests/simulation/chaos.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace sluice {

// Silent workers stay silent until their leases end; all others pull, push and pull again. Calls
// world.Fail() unless each of the others completes several rounds and the step advances.
void GetOn(const Scenario& scenario, Chaos& chaos, World& world);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_CALM_H_

// Draws events: what a hostile network, dying machines and a busy operator do to a job.

#ifndef SLUICE_TESTS_SIMULATION_CHAOS_H_
#define SLUICE_TESTS_SIMULATION_CHAOS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/world.h"

namespace sluice {

// One life of a worker's or an observer's process.
struct SimulatedProcess {
  JoinRequest request;
  std::vector<Welcome> welcomes;  // the sessions it was given; only the last can be alive
  uint64_t sequence = 0;          // of its latest push
  std::vector<uint64_t> pushes;   // numbers, since the server has known it
  bool silent = false;
};

class Chaos {
 public:
  Chaos(const Scenario& scenario, Dice& dice, World& world);

  // The workers that the job was launched with join, and one of them offers parameters.
  void Launch();
  // One more thing happens.
  void Act();

  // For the calm: a process that may be counted on. Its name is that of worker `index`.
  SimulatedProcess& NewProcess(uint32_t index, SessionRole role = SessionRole::kWorker);
  bool Join(SimulatedProcess& process);
  bool IsAlive(const SimulatedProcess& process) const;
  std::vector<SimulatedProcess*> Alive();
  PushHeader NextHeader(SimulatedProcess& process, uint64_t step);
  uint64_t Push(SimulatedProcess& process, const PushHeader& header);
  // Brings the rest of a push, and finishes it.
  void Complete(uint64_t push);
  Values DrawGradient();

 private:
  void JoinSomebody();
  void PushSomething();
  void Repeat();
  void Continue();
  void SpoilChunk(uint64_t push);
  void Abandon();
  void Pull();
  void CancelPull();
  void EndSession();
  void Pass();
  void Operate();
  void Odds();

  SimulatedProcess& Somebody();
  SessionId SomeSession(const SimulatedProcess& process);
  uint64_t DrawStep();
  absl::optional<uint64_t> SomeArriving();
  void NextChunk(uint64_t push);

  const Scenario& scenario_;
  Dice& dice_;
  World& world_;
  uint64_t nonces_ = 0;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_CHAOS_H_

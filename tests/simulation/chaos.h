// Draws random events: a hostile network, dying machines, and a busy operator.

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

// One process of a worker or observer.
struct SimulatedProcess {
  JoinRequest request;
  std::vector<Welcome> welcomes;  // of all its sessions; only the last can be open
  uint64_t sequence = 0;          // of its latest push
  std::vector<uint64_t> pushes;   // the World's numbers of its pushes that the server may remember
  bool silent = false;            // sends no heartbeats
};

class Chaos {
 public:
  Chaos(const Scenario& scenario, Dice& dice, World& world);

  // Lets the launched workers join, and one of them offer parameters.
  void Launch();
  // Draws one event at random and plays it in the world.
  void Act();

  // For Calm: a reliable process with the name of worker `index`.
  SimulatedProcess& NewProcess(uint32_t index, SessionRole role = SessionRole::kWorker);
  bool Join(SimulatedProcess& process);
  bool IsAlive(const SimulatedProcess& process) const;
  std::vector<SimulatedProcess*> Alive();
  std::shared_ptr<const RunningMeans> RunningMeansOf(Sequence sequence) const;
  PushHeader NextHeader(SimulatedProcess& process, uint64_t step);
  uint64_t Push(SimulatedProcess& process, const PushHeader& header);
  // Sends the rest of a push and finishes it.
  void Complete(uint64_t push);
  Values DrawGradient();

 private:
  void JoinAsNew(SimulatedProcess& process);
  void JoinSomebody();
  void PushSomething();
  void Repeat();
  void Continue();
  void OfferOften();
  void Enlarge(Values* gradient);
  void FinishSome(uint64_t push);
  void SpoilChunk(uint64_t push);
  void Abandon();
  void Pull();
  void CancelPull();
  void EndSession();
  void Pass();
  void Operate();
  void Recover();
  void DisturbServers();
  void ComeBack();
  void JoinInACrowd();
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
  uint64_t returns_ = 0;  // of the servers, after which workers have come back
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_CHAOS_H_

// The part of Chaos that disturbs a job: ends of sessions and of the server, time, the operator.

#include <utility>
#include <vector>

#include "tests/simulation/chaos.h"

namespace sluice {

// ---- Ends, time, the operator ----

void Chaos::EndSession() {
  SimulatedProcess& process = Somebody();
  const SessionId session = SomeSession(process);
  if (dice_.Percent(70)) return world_.Lose(session);
  if (dice_.Percent(30)) return world_.Leave(session, /*fails=*/true);
  world_.Leave(session);
  // Who has left repeats nothing, should it come back.
  if (!IsAlive(process)) process.pushes.clear();
}

void Chaos::Pass() {
  const absl::Duration lease = scenario_.options.lease;
  std::vector<absl::Duration> durations = {absl::Nanoseconds(1),
                                           absl::Milliseconds(dice_.Between(1, 2000)), lease / 4,
                                           lease / 2, lease - absl::Nanoseconds(1)};
  if (dice_.Percent(15)) durations = {lease, lease * 3, absl::Seconds(25)};
  std::vector<SessionId> heartbeats;
  for (const SimulatedProcess* const process : Alive()) {
    if (!process->silent) heartbeats.push_back(process->welcomes.back().session);
  }
  const absl::Duration duration = dice_.Of(durations);
  if (scenario_.stops && dice_.Percent(40)) return world_.Stop(duration * 3);
  world_.Pass(duration, heartbeats);
}

void Chaos::Operate() {
  switch (dice_.Below(4)) {
    case 0:
      return world_.Evict(Somebody().request.worker);
    case 1:
      return world_.SetLearningRate(dice_.Of({0.0, 0.125, 0.5, 1.0, 2.0}));
    default:
      return world_.SetConsistency(DrawConsistency(dice_, scenario_));
  }
}

// The server dies. Most of its workers notice at once and come back, also some that others have
// replaced.
void Chaos::Recover() {
  if (scenario_.has_disks()) return DisturbServers();
  if (!world_.oracle().initialized() || world_.oracle().draining()) return;
  if (!world_.has_checkpoint() || dice_.Percent(40)) return world_.TakeCheckpoint();
  world_.Restart();
  ComeBack();
}

// One of several servers will be killed, or a checkpoint is taken. Other events may come between
// its parts. Or there is no space on a disk, for a while.
void Chaos::DisturbServers() {
  if (world_.oracle().draining()) return;
  if (scenario_.journal && dice_.Percent(25)) {
    if (dice_.Percent(60)) return world_.FreeDisks();
    return world_.FillDisk(static_cast<uint32_t>(dice_.Below(scenario_.servers)));
  }
  if (world_.oracle().initialized() && dice_.Percent(60)) return world_.TakeCheckpoint();
  const auto server = static_cast<uint32_t>(dice_.Below(scenario_.servers));
  world_.Kill(server, dice_.Percent(30) ? 0 : dice_.Below(scenario_.servers > 1 ? 200 : 20));
}

void Chaos::ComeBack() {
  std::vector<SimulatedProcess*> back;
  for (const auto& process : processes_) {
    if (!process->welcomes.empty() && dice_.Percent(70)) back.push_back(process.get());
  }
  for (size_t i = back.size(); i > 1; --i) std::swap(back[i - 1], back[dice_.Below(i)]);
  for (SimulatedProcess* const process : back) {
    if (world_.ok()) Join(*process);
  }
  if (world_.ok() && !world_.oracle().initialized()) OfferOften();
}

// Several servers: an offer may fail, and one worker may be faster than another.
void Chaos::OfferOften() {
  const std::vector<SimulatedProcess*> alive = Alive();
  if (alive.empty()) return;
  const SessionId one = alive.front()->welcomes.back().session;
  const SessionId other = alive.back()->welcomes.back().session;
  for (uint64_t i = dice_.Below(3); i > 0 && world_.ok(); --i) {
    world_.InitializeInVain(dice_.Of({one, other}), DrawGradient());
  }
  if (!world_.ok()) return;
  if (one != other && dice_.Percent(50)) return world_.InitializeTwice(one, other, DrawGradient());
  world_.Initialize(other, DrawGradient());
}

void Chaos::JoinInACrowd() {
  for (uint64_t i = dice_.Between(3, 12); i > 0 && world_.ok(); --i) JoinSomebody();
}

void Chaos::Odds() {
  SimulatedProcess& process = Somebody();
  switch (dice_.Below(4)) {
    case 0:
      process.silent = !process.silent;
      return;
    case 1:
      return world_.Initialize(SomeSession(process), DrawGradient());
    case 2:
      return world_.Heartbeat(SomeSession(process));
    default:
      world_.BeginPush(PushHeader(), DrawGradient(), Reason::kMissingHeader);
  }
}

}  // namespace sluice

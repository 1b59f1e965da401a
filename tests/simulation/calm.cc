#include "tests/simulation/calm.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr int kRounds = 20;
constexpr int kTurns = 4;      // in a round
constexpr int kExchanges = 2;  // that each worker must get through

// A worker that keeps to the protocol.
class GoodWorker {
 public:
  GoodWorker(Chaos& chaos, World& world, SimulatedProcess& process)
      : chaos_(chaos), world_(world), process_(process) {}

  // Does whatever can be done now.
  void Act() {
    if (!chaos_.IsAlive(process_)) return JoinAnew();
    if (pull_.has_value()) return TakeParameters();
    if (push_.has_value()) return TakeAnswer();
    Ask(process_.welcomes.back().step, absl::nullopt);
  }

  bool got_on() const { return exchanges_ >= kExchanges; }
  const SimulatedProcess& process() const { return process_; }

 private:
  void JoinAnew() {
    pull_.reset();
    push_.reset();
    chaos_.Join(process_);
  }

  void Ask(Step min_step, absl::optional<Sequence> after) {
    PullRequest request;
    request.session = process_.welcomes.back().session;
    request.min_step = min_step;
    request.after = after;
    pull_ = world_.Pull(request);
    push_.reset();
  }

  void TakeParameters() {
    const SimulatedPull& pull = world_.pull(*pull_);
    if (pull.answers == 0) return;
    pull_.reset();
    if (!pull.result.ok()) return;
    if (answered_) ++exchanges_;
    answered_ = false;
    push_ = chaos_.Push(process_, chaos_.NextHeader(process_, pull.result->header.step.value()));
  }

  void TakeAnswer() {
    const SimulatedPush& push = world_.push(*push_);
    if (push.arriving) chaos_.Complete(*push_);
    if (!world_.ok() || !push.told.has_value()) return;
    if (push.whole && push.answers == 0) return;  // its step is not on all disks
    // What it pushed before may stand in its way: it waits for its turn.
    answered_ = push.told->answered;
    const auto* const known = world_.oracle().workers().Of(push.header.session.value());
    if (known != nullptr)
      Ask(known->from > 0 ? Step(known->from) : Step(), Sequence(known->highest));
  }

  Chaos& chaos_;
  World& world_;
  SimulatedProcess& process_;
  absl::optional<uint64_t> pull_;
  absl::optional<uint64_t> push_;
  bool answered_ = false;
  int exchanges_ = 0;
};

using GoodWorkers = std::vector<std::unique_ptr<GoodWorker>>;

// Completes the pushes that are arriving, and abandons those that the server has cancelled.
void FinishArriving(Chaos& chaos, World& world) {
  for (const uint64_t number : world.Arriving()) {
    if (!world.ok()) return;
    if (world.push(number).cancels > 0) {
      world.AbandonPush(number, Abandoned::kAborted);
    } else if (world.push(number).arriving) {
      chaos.Complete(number);
    }
  }
}

// One of each worker that is not silent, and enough of them for a start: a silent one is lost soon,
// and before the first step the job waits for another in its place.
GoodWorkers Gather(const Scenario& scenario, Chaos& chaos, World& world) {
  GoodWorkers workers;
  for (SimulatedProcess* const process : chaos.Alive()) {
    const bool works = process->request.role == SessionRole::kWorker;
    if (works && !process->silent) {
      workers.push_back(std::make_unique<GoodWorker>(chaos, world, *process));
    }
  }
  const uint32_t needed = world.oracle().started() ? 1 : scenario.options.expected_workers;
  for (uint32_t i = 0; i < needed && world.ok(); ++i) {
    const std::string name = absl::StrCat("w", i);
    const bool counts = std::any_of(workers.begin(), workers.end(), [&name](const auto& worker) {
      return worker->process().request.worker == name;
    });
    if (world.oracle().started() ? !workers.empty() : counts) continue;
    workers.push_back(std::make_unique<GoodWorker>(chaos, world, chaos.NewProcess(i)));
  }
  return workers;
}

std::vector<SessionId> SessionsOf(const Chaos& chaos, const GoodWorkers& workers) {
  std::vector<SessionId> sessions;
  for (const auto& worker : workers) {
    if (!chaos.IsAlive(worker->process())) continue;
    sessions.push_back(worker->process().welcomes.back().session);
  }
  return sessions;
}

// All do what they can, which takes no time; then time passes. Nobody keeps others waiting: who was
// let in last has sent its gradient, too.
void Round(const Scenario& scenario, Chaos& chaos, World& world, const GoodWorkers& workers) {
  for (int turn = 0; turn < kTurns; ++turn) {
    FinishArriving(chaos, world);
    for (const auto& worker : workers) {
      if (world.ok()) worker->Act();
    }
    const std::vector<SessionId> sessions = SessionsOf(chaos, workers);
    if (world.ok() && !world.oracle().initialized() && !sessions.empty()) {
      world.Initialize(sessions.front(), chaos.DrawGradient());
    }
    if (world.ok()) world.Sync();
  }
  while (world.ok() && !world.Arriving().empty()) FinishArriving(chaos, world);
  if (world.ok()) world.Pass(scenario.options.lease / 4, SessionsOf(chaos, workers));
}

}  // namespace

void GetOn(const Scenario& scenario, Chaos& chaos, World& world) {
  GoodWorkers workers = Gather(scenario, chaos, world);
  const uint64_t step = world.oracle().step();
  for (int round = 0; round < kRounds && world.ok(); ++round) {
    bool all_got_on = world.oracle().step() > step;
    for (const auto& worker : workers) all_got_on = all_got_on && worker->got_on();
    if (all_got_on) return;
    Round(scenario, chaos, world, workers);
  }
  if (!world.ok()) return;
  std::string stuck;
  for (const auto& worker : workers) {
    if (!worker->got_on()) absl::StrAppend(&stuck, " ", worker->process().request.worker);
  }
  world.Fail(absl::StrCat("liveness (rule 7): nothing goes wrong any more, but after ", kRounds,
                          " rounds the step went from ", step, " to ", world.oracle().step(),
                          ", and these do not get on:", stuck));
}

}  // namespace sluice

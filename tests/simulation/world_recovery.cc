// The part of World that starts the server, stops it, and kills it.

#include <iterator>
#include <utility>

#include "tests/simulation/world.h"

namespace sluice {
namespace {

constexpr uint64_t kSessionsPerIncarnation = 100000;

// What a file would keep. Plain SGD has no slots.
ShardCheckpoint Saved(const ShardCheckpoint& checkpoint) {
  ShardCheckpoint saved;
  saved.job_id = checkpoint.job_id;
  saved.step = checkpoint.step;
  saved.incarnations = checkpoint.incarnations;
  saved.layout = checkpoint.layout;
  saved.optimizer = checkpoint.optimizer;
  saved.consistency = checkpoint.consistency;
  saved.own_consistency = checkpoint.own_consistency;
  saved.learning_rate = checkpoint.learning_rate;
  saved.workers = checkpoint.workers;
  saved.forgot_workers = checkpoint.forgot_workers;
  saved.parameters = checkpoint.parameters;
  for (SessionRecord& worker : saved.workers) {
    worker.presence = worker.alive() ? Presence::kLost : Presence::kEvicted;
    worker.awaited_until = absl::InfinitePast();
    worker.contributed.reset();
    worker.excused = false;
    worker.active_from = Step();
    worker.session = SessionId();
    worker.served = TimeSpans();
    for (auto& answer : worker.answers) answer.second.part_of.reset();
  }
  return saved;
}

}  // namespace

void World::Stop(absl::Duration duration) {
  clock_.Advance(duration);
  Begin(
      [&] { return absl::StrCat("the server stood still for ", absl::FormatDuration(duration)); });
  oracle_->Tick();
  shard().Tick();
  End();
}

void World::TakeCheckpoint() {
  Begin([&] { return absl::StrCat("a checkpoint is taken"); });
  expected_checkpoint_ = oracle_->Checkpoint();
  shard().TakeCheckpoint([this](const auto& taken) {
    ExpectReason(taken.status(), Reason::kNone);
    if (taken.ok()) checkpoint_ = *taken;
  });
  End();
}

void World::Restart() {
  Begin([&] {
    return absl::StrCat("the server is killed, and started again from step ",
                        checkpoint_->step.value());
  });
  CheckHeld();
  ForgetCallsInFlight();
  servers_ = nullptr;
  ShardOptions& options = scenario_.options;
  options.incarnation = options.incarnation.Next();
  options.session_base = SessionId(options.session_base.value() + kSessionsPerIncarnation);
  servers_ = MakeServers();
  ExpectReason(shard().Restore(Saved(*checkpoint_)), Reason::kNone);
  shard().BeginIncarnation({});
  checkpoint_ = nullptr;
  oracle_ = std::make_unique<Oracle>(scenario_, clock_.Now(), expected_checkpoint_);
  oracle_->BeginCall(clock_.Now());
  step_ = expected_checkpoint_.step;
  End();
}

// Calls that the server has not answered end, and what was answered since the checkpoint may be
// answered anew.
void World::ForgetCallsInFlight() {
  for (const auto& push : pushes_) {
    push->past = true;
    push->parts[0].pending = nullptr;
    push->arriving = false;
  }
  arriving_.clear();
  for (const auto& pull : pulls_) pull->past = true;
  held_.clear();
  first_answers_.clear();
  for (const auto& entry : expected_checkpoint_.workers) {
    const ModelWorker& worker = entry.second;
    for (const auto& answer : worker.answers) {
      first_answers_.emplace(std::make_pair(worker.process, answer.first), answer.second);
    }
  }
  for (auto it = counted_.begin(); it != counted_.end();) {
    it = it->second < expected_checkpoint_.step ? std::next(it) : counted_.erase(it);
  }
}

// Independent of the oracle: whatever is repeated, and however often the server is started again,
// a push is part of one step at most.
void World::CheckCountedOnce(const SimulatedPush& push, const PushOutcome& outcome) {
  const bool applied = outcome.disposition == Disposition::kApplied;
  if (!applied && outcome.disposition != Disposition::kAccepted) return;
  const uint64_t step = outcome.step.value() - (applied ? 1 : 0);
  const auto counted = counted_.emplace(push.original, step);
  if (counted.second) return;
  Fail(absl::StrCat("at most once (rule 2): push ", push.original, " is part of step ",
                    counted.first->second, " and of step ", step));
}

}  // namespace sluice

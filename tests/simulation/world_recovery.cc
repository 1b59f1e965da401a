// The part of World that starts the server, stops it, and kills it.

#include <iterator>
#include <utility>

#include "tests/simulation/world.h"
#include "tests/testing/rows_of_snapshot.h"

namespace sluice {
namespace {

constexpr uint64_t kSessionsPerIncarnation = 100000;

// What has not come to a server may come to its successor.
template <typename Part>
void ForgetUnlessLate(Part* part) {
  if (part->state == CallState::kNotSent) return;
  *part = Part();
  part->state = CallState::kEnded;
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
  shard().durability().TakeCheckpoint([this](const auto& taken) {
    ExpectReason(taken.status(), Reason::kNone);
    if (taken.ok() && scenario_.has_disks()) return disks_.Take(*taken, expected_checkpoint_);
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
  BeginIncarnation();
  ShardCheckpoint saved = SavedState(*checkpoint_);
  saved.parameters = checkpoint_->parameters;
  saved.rows = RowsOf(*checkpoint_->parameters, checkpoint_->row_slots.size());
  saved.row_steps = checkpoint_->row_steps;
  ExpectReason(shard().durability().Restore(saved), Reason::kNone);
  shard().durability().BeginIncarnation({});
  checkpoint_ = nullptr;
  oracle_ = std::make_unique<Oracle>(scenario_, clock_.Now(), expected_checkpoint_);
  ForgetAnswers();
  oracle_->BeginCall(clock_.Now());
  step_ = expected_checkpoint_.step;
  End();
}

// The next one, in which session numbers do not come again.
void World::BeginIncarnation() {
  ShardOptions& options = scenario_.options;
  options.incarnation = options.incarnation.Next();
  options.session_base = SessionId(options.session_base.value() + kSessionsPerIncarnation);
  servers_ = MakeServers();
}

// Calls that the server has not answered end.
void World::ForgetCallsInFlight() {
  for (const auto& push : pushes_) {
    push->past = true;
    push->arriving = false;
    for (PushPart& part : push->parts) ForgetUnlessLate(&part);
  }
  arriving_.clear();
  gathering_.clear();
  due_.clear();
  for (const auto& pull : pulls_) {
    pull->past = true;
    for (PullPart& part : pull->parts) ForgetUnlessLate(&part);
  }
  held_.clear();
}

// What was answered since the last step that is there again may be answered anew. With a journal,
// nothing that counted is.
void World::ForgetAnswers() {
  first_answers_.clear();
  for (const auto& entry : oracle_->workers().all()) {
    const ModelWorker& worker = entry.second;
    for (const auto& answer : worker.answers) {
      first_answers_.emplace(std::make_pair(worker.process, answer.first), answer.second);
    }
  }
  for (auto it = counted_.begin(); it != counted_.end();) {
    const bool lost = it->second >= oracle_->step();
    if (lost && scenario_.journal) {
      Fail(absl::StrCat("push ", it->first, " was told that it is part of step ", it->second + 1,
                        ", and the servers come back to step ", oracle_->step()));
    }
    it = lost ? counted_.erase(it) : std::next(it);
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

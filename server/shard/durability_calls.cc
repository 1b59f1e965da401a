#include "server/shard/durability_calls.h"

#include <algorithm>
#include <utility>

#include "server/replica/replica_commands.h"

namespace sluice {
namespace {

// The latest step of that incarnation that was saved.
absl::optional<Step> LatestOf(const std::vector<CheckpointKey>& saved, Incarnation incarnation) {
  absl::optional<Step> latest;
  for (const CheckpointKey& key : saved) {
    if (key.incarnation == incarnation) latest = std::max(latest.value_or(key.step), key.step);
  }
  return latest;
}

}  // namespace

// ---- Recovery ----

void DurabilityCalls::BeginRecovery() {
  absl::MutexLock lock(&job_.mu);
  job_.recovery = Recovery::kRepeats;
}

void DurabilityCalls::EndRecovery() {
  absl::MutexLock lock(&job_.mu);
  job_.recovery = Recovery::kDone;
}

bool DurabilityCalls::recovers() const {
  absl::MutexLock lock(&job_.mu);
  return job_.recovery != Recovery::kDone;
}

absl::Status DurabilityCalls::Restore(const ShardCheckpoint& checkpoint,
                                      const IncarnationBegins& begins) {
  auto program = MakeProgramOptimizer(options_, *checkpoint.layout, checkpoint.optimizer);
  if (!program.ok()) return program.status();
  absl::MutexLock lock(&job_.mu);
  steps_.Open(checkpoint.layout, checkpoint.optimizer, *std::move(program));
  job_.others_checkpoints.Load({SourceOf(checkpoint), begins});
  const absl::Status restored = stripe_.Restore(checkpoint, checkpoint.step);
  if (!restored.ok()) return restored;
  if (checkpoint.optimizer_steps > 0) steps_.NoteRestored();
  job_.parts.history.Restore(checkpoint);
  return absl::OkStatus();
}

absl::StatusOr<LeastJournaled> DurabilityCalls::AwaitLoaded() {
  absl::MutexLock lock(&job_.mu);
  job_.AwaitOthers([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu) {
    return job_.others_checkpoints.is_loaded();
  });
  if (job_.others.stopped()) return job_.others.why_stopped();
  return job_.others_checkpoints.least_journaled();
}

void DurabilityCalls::BeginIncarnation(const IncarnationBegins& incarnations) {
  absl::MutexLock lock(&job_.mu);
  job_.parts.history.BeginIncarnation(incarnations);
  job_.recovery = std::max(job_.recovery, Recovery::kSaves);
}

void DurabilityCalls::SetLostSteps(uint64_t steps) {
  absl::MutexLock lock(&job_.mu);
  job_.parts.history.SetLostSteps(steps);
}

// ---- The journal ----

void DurabilityCalls::EnableJournal(StepJournal* journal) {
  absl::MutexLock lock(&job_.mu);
  steps_.SetJournal(journal);
  job_.coordinator.BeginJournal();
  job_.others.Send(BeginJournal{options_.incarnation});
}

void DurabilityCalls::OnDurable(Step step) {
  CompletingLock lock(&job_.mu);
  job_.coordinator.OnDurable(step, lock.completions());
}

void DurabilityCalls::SetJournalError(const absl::Status& error) {
  absl::MutexLock lock(&job_.mu);
  job_.coordinator.SetJournalError(error);
}

void DurabilityCalls::FailHeldAnswers(const absl::Status& why) {
  CompletingLock lock(&job_.mu);
  job_.coordinator.EndJournal(why, lock.completions());
  job_.parts.lifecycle.ForgetEnd();
  job_.AnswerIfEndIsSaved(lock.completions());
}

// ---- The end of training ----

void DurabilityCalls::SaveEndWith(CheckpointCallback save) {
  absl::MutexLock lock(&job_.mu);
  steps_.SaveEndWith(std::move(save));
  job_.parts.lifecycle.SaveEnd();
}

void DurabilityCalls::OnEndSaved(const absl::StatusOr<Step>& saved) {
  {
    absl::MutexLock lock(&job_.mu);
    job_.parts.lifecycle.OnEndSaved(saved, job_.parts.step.number());
  }
  steps_.Advance();
}

void DurabilityCalls::WhenEndIsSaved(std::function<void(const absl::Status&)> done) {
  CompletingLock lock(&job_.mu);
  if (job_.await_end.empty()) job_.await_end_since = job_.clock.Now();
  job_.await_end.push_back(std::move(done));
  job_.AnswerIfEndIsSaved(lock.completions());
}

// ---- Checkpoints ----

void DurabilityCalls::TakeCheckpoints(uint64_t steps, CheckpointCallback taken) {
  absl::MutexLock lock(&job_.mu);
  job_.checkpoints.SetPeriodic(steps, std::move(taken));
  steps_.KeepRemovedRows();
}

void DurabilityCalls::Request(CheckpointCallback taken,
                              void (CheckpointRequests::*add)(CheckpointCallback)) {
  absl::Status wanted;
  {
    absl::MutexLock lock(&job_.mu);
    wanted = job_.CheckRecovery(Recovery::kSaves);
    if (wanted.ok()) wanted = job_.others.why_stopped();
    if (wanted.ok()) wanted = job_.parts.lifecycle.CheckInitialized();
    if (wanted.ok()) (job_.checkpoints.*add)(taken);
  }
  if (!wanted.ok()) {
    taken(wanted);
    return;
  }
  steps_.Advance();
}

void DurabilityCalls::KeepCheckpoints(std::vector<CheckpointKey> keep) {
  const absl::optional<Step> saved = LatestOf(keep, options_.incarnation);
  const std::shared_ptr<RowTables> tables = stripe_.tables();
  if (tables != nullptr && saved.has_value()) tables->ForgetRemovals(*saved);
  absl::MutexLock lock(&job_.mu);
  job_.others.Send(sluice::KeepCheckpoints{std::move(keep)});
}

}  // namespace sluice

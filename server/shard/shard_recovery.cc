// The part of Shard that deals with recovery, the journal and checkpoints.

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/vector_copy.h"
#include "server/holder/stripe_slots.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

absl::Status MadeOtherBits(const StepRecord& record, uint64_t checksum) {
  return absl::FailedPreconditionError(absl::StrCat(
      "step ", record.step.value(), " comes out with other bits: the server that made it got the ",
      "checksum ", absl::Hex(record.checksum, absl::kZeroPad16), ", this one gets ",
      absl::Hex(checksum, absl::kZeroPad16), ", so it is another build or another processor"));
}

}  // namespace

// ---- Recovery ----

absl::Status Shard::Restore(const ShardCheckpoint& checkpoint) {
  absl::MutexLock lock(&mu_);
  OpenModel(checkpoint.layout, checkpoint.optimizer);
  if (leads()) others_.Load({SourceOf(checkpoint)});
  const absl::Status restored = RestoreSlots(checkpoint.slots, *stripe_, *parallel_);
  if (!restored.ok()) return restored;
  stripe_->set_optimizer_steps(checkpoint.optimizer_steps);
  if (checkpoint.optimizer_steps > 0) director_->NoteRestored();
  std::shared_ptr<Snapshot> parameters = holder_.MakeFirst(checkpoint.step);
  CopyTo(AsPiece(checkpoint.parameters->values.span()), parameters->values.span());
  holder_.Publish(std::move(parameters));
  coordinator_.Restore(checkpoint);
  return absl::OkStatus();
}

absl::Status Shard::Replay(const StepRecord& record, absl::Span<const float> sum) {
  SnapshotPair step;
  {
    absl::MutexLock lock(&mu_);
    step = holder_.BeginStep();
  }
  director_->Load(record.gradients, record.samples);
  if (record.gradients > 0) stripe_->Load(sum);
  uint64_t checksum = 0;
  MakeOn(step.Vectors(nullptr, &checksum), record.terms);
  director_->Clear();
  stripe_->Clear();
  if (checksum != record.checksum) return MadeOtherBits(record, checksum);
  absl::MutexLock lock(&mu_);
  holder_.Publish(std::move(step.next));
  coordinator_.Replay(record);
  return absl::OkStatus();
}

void Shard::BeginIncarnation(const std::map<Incarnation, Step>& incarnations) {
  absl::MutexLock lock(&mu_);
  coordinator_.BeginIncarnation(incarnations);
}

void Shard::SetLostSteps(uint64_t steps) {
  absl::MutexLock lock(&mu_);
  coordinator_.set_lost_steps(steps);
}

// ---- The journal ----

void Shard::SetStepListener(std::function<void(Step)> listener) {
  step_listener_ = std::move(listener);
}

void Shard::EnableJournal(StepJournal* journal) {
  absl::MutexLock lock(&mu_);
  journal_ = journal;
  coordinator_.HoldUntilDurable();
}

void Shard::OnDurable(Step step) {
  CompletingLock lock(&mu_);
  coordinator_.OnDurable(step, lock.completions());
}

void Shard::SetJournalError(const absl::Status& error) {
  absl::MutexLock lock(&mu_);
  coordinator_.SetJournalError(error);
}

void Shard::FailHeldAnswers(const absl::Status& why) {
  CompletingLock lock(&mu_);
  coordinator_.FailHeldAnswers(why, lock.completions());
}

void Shard::AppendToJournal(const NextAction& action, uint64_t checksum) {
  StepRecord record;
  {
    absl::MutexLock lock(&mu_);
    record = coordinator_.MakeStepRecord(action);
  }
  record.terms = director_->terms();
  record.gradients = director_->gradients();
  record.samples = director_->samples();
  record.checksum = checksum;
  journal_->Append(record, record.gradients == 0 ? absl::Span<const float>() : stripe_->sum());
}

// ---- Checkpoints ----

void Shard::TakeCheckpoints(uint64_t steps, CheckpointCallback taken) {
  absl::MutexLock lock(&mu_);
  checkpoints_.SetPeriodic(steps, std::move(taken));
}

// Called when there are parameters.
void Shard::RequestPeriodicCheckpoint() {
  if (!checkpoints_.has_periodic()) return;
  if (others_.saves()) {
    LOG(WARNING) << "step " << coordinator_.step() << " gets no checkpoint, since another server "
                 << "still writes the one before; make --checkpoint-every larger";
  } else if (coordinator_.RequestCheckpoint().ok()) {
    checkpoints_.AddPeriodic();
  }
}

void Shard::TakeCheckpoint(CheckpointCallback taken) {
  absl::Status wanted;
  {
    absl::MutexLock lock(&mu_);
    wanted = coordinator_.RequestCheckpoint();
    if (wanted.ok()) checkpoints_.Add(taken);
  }
  if (!wanted.ok()) {
    taken(wanted);
    return;
  }
  Advance();
}

void Shard::KeepCheckpoints(std::vector<CheckpointKey> keep) {
  absl::MutexLock lock(&mu_);
  others_.Send(sluice::KeepCheckpoints{std::move(keep)});
}

// Copies only the slots, which later steps overwrite. The parameters are immutable.
void Shard::MakeCheckpoint() {
  const absl::Time began = clock_.Now();
  const auto checkpoint = std::make_shared<ShardCheckpoint>();
  std::vector<CheckpointCallback> callbacks;
  {
    absl::MutexLock lock(&mu_);
    *checkpoint = coordinator_.Checkpoint();
    checkpoint->parameters = holder_.latest();
    checkpoint->elsewhere = others_.TakeCheckpoint(
        {checkpoint->job_id, checkpoint->incarnations.current(), checkpoint->step});
    callbacks = checkpoints_.TakeAll();
  }
  {
    const TraceSpan span(trace_, kStepsRow, "checkpoint", checkpoint->step);
    checkpoint->slots = CopySlots(*stripe_, *parallel_);
  }
  checkpoint->optimizer_steps = stripe_->optimizer_steps();
  checkpoint->pause = clock_.Now() - began;
  for (const CheckpointCallback& taken : callbacks)
    taken(std::shared_ptr<const ShardCheckpoint>(checkpoint));
}

}  // namespace sluice

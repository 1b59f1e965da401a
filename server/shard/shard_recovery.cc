// The part of Shard that deals with recovery, the journal and checkpoints.

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "common/tensor/vector_copy.h"
#include "server/holder/stripe_slots.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

// So long a worker that leaves waits for the end to be saved. Its call has a deadline of 60 s.
constexpr absl::Duration kLongestSave = absl::Seconds(30);

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

void Shard::BeginRecovery() {
  absl::MutexLock lock(&mu_);
  recovery_ = Recovery::kRepeats;
}

void Shard::EndRecovery() {
  absl::MutexLock lock(&mu_);
  recovery_ = Recovery::kDone;
}

bool Shard::recovers() const {
  absl::MutexLock lock(&mu_);
  return recovery_ != Recovery::kDone;
}

absl::Status Shard::CheckRecovered(Recovery at_least) const {
  if (recovery_ >= at_least) return absl::OkStatus();
  return absl::UnavailableError("the servers restore their state; try again");
}

absl::Status Shard::Restore(const ShardCheckpoint& checkpoint, const IncarnationBegins& begins) {
  absl::MutexLock lock(&mu_);
  OpenModel(checkpoint.layout, checkpoint.optimizer);
  if (leads()) others_.Load({SourceOf(checkpoint), begins});
  const absl::Status restored = RestoreSlots(checkpoint.slots, model_->stripe(), *parallel_);
  if (!restored.ok()) return restored;
  model_->stripe().set_optimizer_steps(checkpoint.optimizer_steps);
  if (checkpoint.optimizer_steps > 0) director_->NoteRestored();
  std::shared_ptr<Snapshot> parameters = holder_.MakeFirst(checkpoint.step);
  CopyTo(AsPiece(checkpoint.parameters->values.span()), parameters->values.span());
  const absl::Status rows =
      model_->StartRows(checkpoint.rows.get(), checkpoint.row_steps, *parameters);
  if (!rows.ok()) return rows;
  holder_.Publish(std::move(parameters));
  coordinator_.Restore(checkpoint);
  return absl::OkStatus();
}

absl::StatusOr<LeastJournaled> Shard::AwaitLoaded() {
  const auto over = [this] {
    absl::MutexLock lock(&mu_);
    return others_.IsLoaded() || others_.stopped();
  };
  if (pump_ != nullptr) pump_(over);
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return others_.IsLoaded() || others_.stopped();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&is_over));
  if (others_.stopped()) return others_.why_stopped();
  return others_.least_journaled();
}

// With several servers, an operator's call may come meanwhile. What it asks for is done afterwards.
absl::Status Shard::Replay(const StepRecord& record, absl::Span<const float> sum,
                           absl::Span<const TableSums> rows) {
  {
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !advancing_; };
    absl::MutexLock lock(&mu_, absl::Condition(&idle));
    advancing_ = true;
  }
  const absl::Status replayed = MakeAgain(record, sum, rows);
  DoAll(DecideNext());
  return replayed;
}

absl::Status Shard::MakeAgain(const StepRecord& record, absl::Span<const float> sum,
                              absl::Span<const TableSums> rows) {
  SnapshotPair step;
  {
    absl::MutexLock lock(&mu_);
    step = holder_.BeginStep();
    others_.Send(sluice::ReplayStep{record.step, record.incarnation});
  }
  director_->Load(record.gradients, record.samples);
  model_->SumInto(*step.next);
  if (record.gradients > 0) model_->Load(sum, rows);
  uint64_t checksum = 0;
  MakeOn({step, nullptr, &checksum}, record.terms);
  director_->Clear();
  model_->Clear();
  absl::MutexLock lock(&mu_);
  if (others_.stopped()) return others_.why_stopped();
  if (checksum != record.checksum) return OtherBitsError(record.step, record.checksum, checksum);
  others_.Send(PublishStep());
  holder_.Publish(std::move(step.next));
  coordinator_.Replay(record);
  return absl::OkStatus();
}

void Shard::BeginIncarnation(const IncarnationBegins& incarnations) {
  absl::MutexLock lock(&mu_);
  coordinator_.BeginIncarnation(incarnations);
  recovery_ = std::max(recovery_, Recovery::kSaves);
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
  others_.Send(BeginJournal{options_.incarnation});
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
  coordinator_.ForgetEnd();
  AnswerIfEndIsSaved(lock.completions());
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
  const bool has_sum = record.gradients > 0;
  journal_->Append(record, has_sum ? model_->sum() : absl::Span<const float>(),
                   has_sum ? model_->row_sums() : std::vector<TableSums>());
}

// ---- The end of training ----

void Shard::SaveEndWith(CheckpointCallback save) {
  absl::MutexLock lock(&mu_);
  save_end_ = std::move(save);
  coordinator_.SaveEnd();
}

void Shard::OnEndSaved(const absl::StatusOr<Step>& saved) {
  {
    absl::MutexLock lock(&mu_);
    coordinator_.OnEndSaved(saved);
  }
  Advance();
}

void Shard::WhenEndIsSaved(std::function<void(const absl::Status&)> done) {
  CompletingLock lock(&mu_);
  if (await_end_.empty()) await_end_since_ = clock_.Now();
  await_end_.push_back(std::move(done));
  AnswerIfEndIsSaved(lock.completions());
}

// A server that goes down saves the end by itself, unless another server is lost. That one may have
// lost steps.
void Shard::AnswerIfEndIsSaved(Completions* completions) {
  if (await_end_.empty()) return;
  const bool waits = coordinator_.AwaitsEnd();
  const bool is_patient = clock_.Now() - await_end_since_ < kLongestSave;
  if (waits && !others_.stopped() && is_patient) return;
  const bool is_lost = waits && others_.stopped();
  const absl::Status status =
      is_lost ? absl::UnavailableError("another server was lost before the end was saved")
              : absl::OkStatus();
  for (auto& done : std::exchange(await_end_, {})) {
    completions->Add([done = std::move(done), status] { done(status); });
  }
}

// ---- Checkpoints ----

void Shard::TakeCheckpoints(uint64_t steps, CheckpointCallback taken) {
  absl::MutexLock lock(&mu_);
  checkpoints_.SetPeriodic(steps, std::move(taken));
  saves_ = true;
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
    wanted = CheckRecovered(Recovery::kSaves);
    if (wanted.ok()) wanted = others_.why_stopped();
    if (wanted.ok()) wanted = coordinator_.RequestCheckpoint();
    if (wanted.ok()) checkpoints_.Add(taken);
  }
  if (!wanted.ok()) {
    taken(wanted);
    return;
  }
  Advance();
}

void Shard::KeepCheckpoints(std::vector<CheckpointKey> keep) {
  const absl::optional<Step> saved = LatestOf(keep, options_.incarnation);
  const std::shared_ptr<RowTables> tables = TablesHere();
  if (tables != nullptr && saved.has_value()) tables->ForgetRemovals(*saved);
  absl::MutexLock lock(&mu_);
  others_.Send(sluice::KeepCheckpoints{std::move(keep)});
}

// Copies only the slots, which later steps overwrite. The parameters are immutable.
void Shard::MakeCheckpoint(const NextAction& action) {
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
    if (action.saves_end) callbacks.push_back(save_end_);
  }
  {
    const TraceSpan span(trace_, kStepsRow, "checkpoint", checkpoint->step);
    checkpoint->slots = CopySlots(model_->stripe(), *parallel_);
  }
  checkpoint->optimizer_steps = model_->stripe().optimizer_steps();
  checkpoint->row_slots = model_->row_slots();
  checkpoint->row_steps = model_->row_steps();
  checkpoint->pause = clock_.Now() - began;
  for (const CheckpointCallback& taken : callbacks)
    taken(std::shared_ptr<const ShardCheckpoint>(checkpoint));
}

}  // namespace sluice

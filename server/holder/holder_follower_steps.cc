// The part of HolderFollower that makes steps, and saves and loads checkpoints.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/stripes.h"
#include "common/tensor/vector_copy.h"
#include "server/holder/holder_follower.h"
#include "server/holder/stripe_slots.h"
#include "server/snapshots/striped_tensor.h"

namespace sluice {
namespace {

absl::Status NoDirectory() {
  return absl::FailedPreconditionError("this server has no directory for checkpoints");
}

}  // namespace

// ---- Steps ----

// Done at once: no push can be admitted, and no pull released, before there are parameters.
void HolderFollower::Do(const TakeParameters& command) {
  const std::unique_ptr<PendingPush> push = Take(command.push);
  const std::shared_ptr<Snapshot> first = MakeFirst(command.step);
  push->gradient().CopyTo(0, first->values.span());
  model_->StartRows(nullptr, 0, *first).IgnoreError();  // there are none that could be missing
  Publish(first);
}

std::shared_ptr<Snapshot> HolderFollower::MakeFirst(Step step) {
  absl::MutexLock lock(&mu_);
  return holder_.MakeFirst(step);
}

void HolderFollower::Publish(std::shared_ptr<const Snapshot> snapshot) {
  absl::MutexLock lock(&mu_);
  holder_.Publish(std::move(snapshot));
}

void HolderFollower::Do(const AddPush& command) {
  const auto push = std::make_shared<std::unique_ptr<PendingPush>>(Take(command.push));
  arithmetic_->Run([this, command, push] {
    // The last gradient is not added to the sum. So its memory is not the sum's.
    const PushId first = command.last ? PushId() : command.push;
    if (journal_ == nullptr) model_->SumInto(*BeginStep(first).next);
    // The journal takes the whole sum.
    if (!command.last || journal_ != nullptr) return model_->Add(**push, command.weight);
    model_->Keep(**push, command.weight);
    last_ = std::move(*push);
  });
}

SnapshotPair HolderFollower::BeginStep(PushId first) {
  absl::MutexLock lock(&mu_);
  return holder_.BeginStep(first);
}

void HolderFollower::Do(const StepOrder& order) {
  if (order.kind == StepOrder::Kind::kDigest) {
    arithmetic_->Run([this, order, current = latest()] {
      report_(model_->Carry(order, {current, nullptr}));
    });
    return;
  }
  arithmetic_->Run([this, order] {
    const SnapshotPair step = BeginStep();
    WriteProgress progress;
    if (order.inconsistent_reads) {
      progress = [this, &step](uint64_t written) {
        absl::MutexLock lock(&mu_);
        holder_.Grow(step.next, written);
      };
    }
    const bool measures = journal_ != nullptr || expected_.has_value();
    record_.gradients = order.kind == StepOrder::Kind::kMake ? 1 : 0;
    report_(model_->Carry(order, step, progress, measures ? &record_.checksum : nullptr));
  });
}

void HolderFollower::Do(const PublishStep& /*command*/) {
  // This thread drops the old snapshot at the end: the next pushes may need its memory.
  const SnapshotPair made = BeginStep();
  Publish(made.next);
  arithmetic_->Run([this, step = made.next->step] {
    EndStep(step);
    model_->Clear();
    if (storage_ == nullptr) model_->ForgetRemovals(step);
    last_ = nullptr;
  });
}

// A reader needs one pass over a tensor, less than a step does.
void HolderFollower::Do(const SummarizeTensor& command) {
  arithmetic_->Run([this, command, current = latest()] {
    const StripedTensor tensor(*whole_, Stripes(whole_->size(), place_.stripes), command.query);
    report_(SummaryReport{command.number, tensor.Read(place_.stripe, current->values.span())});
  });
}

// ---- The journal ----

void HolderFollower::EndStep(Step step) {
  const StepRecord record = std::exchange(record_, {});
  const absl::optional<uint64_t> expected = std::exchange(expected_, absl::nullopt);
  if (expected.has_value()) {
    if (replayed_.ok() && *expected != record.checksum)
      replayed_ = OtherBitsError(step, *expected, record.checksum);
  } else if (journal_ != nullptr) {
    StepRecord appended = record;
    appended.step = step;
    appended.incarnation = incarnation_;
    const bool has_sum = record.gradients > 0;
    journal_->Append(appended, has_sum ? model_->sum() : absl::Span<const float>(),
                     has_sum ? model_->row_sums() : std::vector<TableSums>());
  }
}

void HolderFollower::Do(const ReplayStep& command) {
  arithmetic_->Run([this, command] {
    const absl::Status loaded = LoadSum(command);
    if (replayed_.ok()) replayed_ = loaded;
  });
}

absl::Status HolderFollower::LoadSum(const ReplayStep& command) {
  expected_ = 0;
  const auto next = storage_ == nullptr ? NoDirectory() : storage_->NextJournaled();
  if (!next.ok()) return next.status();
  if (next->step != command.step || next->incarnation != command.incarnation) {
    return absl::DataLossError(absl::StrCat(
        "the journal continues with step ", next->step.value(), " of incarnation ",
        next->incarnation.value(), ", and the first server's with step ", command.step.value(),
        " of incarnation ", command.incarnation.value(), "; restore the files of one from a copy"));
  }
  expected_ = next->checksum;
  // A stripe without elements may have rows.
  const bool has_sum = next->sum.size() > 0 || !next->rows.empty();
  model_->SumInto(*BeginStep().next);
  if (has_sum) model_->Load(next->sum.span(), next->rows);
  return absl::OkStatus();
}

void HolderFollower::Do(const BeginJournal& command) {
  if (storage_ == nullptr) return;
  arithmetic_->Run([this, command] {
    incarnation_ = command.incarnation;
    journal_ = storage_->StartJournal(command.incarnation, report_);
  });
}

// ---- Checkpoints ----

// On the executor, as a file takes long to read. Nobody joins meanwhile.
void HolderFollower::Do(const LoadCheckpoint& command) {
  arithmetic_->Run([this, command] {
    const absl::StatusOr<Step> journaled = Load(command);
    report_(LoadedReport{journaled.status(), journaled.value_or(Step())});
  });
}

absl::StatusOr<Step> HolderFollower::Load(const LoadCheckpoint& command) {
  if (storage_ == nullptr) return NoDirectory();
  const auto loaded = storage_->Load(command.source, *whole_);
  if (!loaded.ok()) return loaded.status();
  const absl::Status restored = RestoreSlots(loaded->slots, model_->stripe(), parallel_);
  if (!restored.ok()) return restored;
  model_->stripe().set_optimizer_steps(loaded->optimizer_steps);
  const std::shared_ptr<Snapshot> first = MakeFirst(command.source.step);
  CopyTo(AsPiece(loaded->parameters->values.span()), first->values.span());
  const absl::Status rows = model_->StartRows(loaded->rows.get(), loaded->row_steps, *first);
  if (!rows.ok()) return rows;
  Publish(first);
  return storage_->OpenJournal(command, *whole_);
}

void HolderFollower::Do(const TakeCheckpoint& command) {
  arithmetic_->Run([this, command, parameters = latest()] {
    const auto stripe = std::make_shared<const StripeCheckpoint>(StripeCheckpoint{
        parameters, CopySlots(model_->stripe(), parallel_), model_->stripe().optimizer_steps(),
        nullptr, model_->row_slots(), model_->row_steps()});
    if (journal_ != nullptr) journal_->BeginSegment();
    files_->Run(
        [this, command, stripe, replayed = replayed_] { Save(command, *stripe, replayed); });
  });
}

// What was not made again to the same bits does not become a checkpoint.
void HolderFollower::Save(const TakeCheckpoint& command, const StripeCheckpoint& stripe,
                          const absl::Status& replayed) {
  if (!replayed.ok()) return report_(SavedReport{command.step, replayed});
  const absl::StatusOr<uint64_t> saved =
      storage_ == nullptr ? NoDirectory() : storage_->Save(command, *whole_, stripe);
  if (saved.ok()) model_->ForgetRemovals(command.step);
  report_(SavedReport{command.step, saved.status(), saved.value_or(0)});
}

// After the files of earlier commands. They are removed while the job trains on.
void HolderFollower::Do(const KeepCheckpoints& command) {
  if (storage_ == nullptr) return;
  arithmetic_->Run([this, command] { files_->Run([this, command] { storage_->Keep(command); }); });
}

}  // namespace sluice

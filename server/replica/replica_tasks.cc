#include "server/replica/replica_tasks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status NoDirectory() {
  return absl::FailedPreconditionError("this server has no directory for checkpoints");
}

}  // namespace

ReplicaTasks::ReplicaTasks(ServerStripe& stripe, ArrivedPushes& arrived, ReportListener report,
                           StripeStorage* storage, Executor& arithmetic, Executor& files)
    : stripe_(stripe),
      arrived_(arrived),
      report_(std::move(report)),
      storage_(storage),
      arithmetic_(arithmetic),
      files_(files) {}

void ReplicaTasks::EndCopies() {
  arithmetic_.Run([this] {
    ended_ = true;
    GiveCopies();
  });
}

void ReplicaTasks::Drain() {
  EndCopies();
  arithmetic_.Drain();
  files_.Drain();
  stripe_.SetJournal(nullptr);
  journal_ = nullptr;
}

void ReplicaTasks::Do(const OpenModel& command, StripePlace place) {
  stripe_.Open(command.layout, command.optimizer, place);
  whole_ = command.layout;
}

// ---- Steps ----

// Done at once: no push can be admitted, and no pull released, before there are parameters.
void ReplicaTasks::Do(const TakeParameters& command) {
  stripe_.Start(stripe_.MakeFirst(*arrived_.Take(command.push), command.step));
}

void ReplicaTasks::Do(const AddPush& command) {
  const auto push = std::make_shared<std::unique_ptr<PendingPush>>(arrived_.Take(command.push));
  arithmetic_.Run(
      [this, command, push] { stripe_.Add(std::move(*push), command.weight, command.last); });
}

void ReplicaTasks::Do(const StepOrder& order) {
  arithmetic_.Run([this, order] {
    if (order.kind != StepOrder::Kind::kDigest) {  // which is no order of a step
      made_ = order.kind == StepOrder::Kind::kMake;
      writes_ = writes_ || made_ || order.kind == StepOrder::Kind::kCopy;
    }
    report_(stripe_.Carry(order));
  });
}

void ReplicaTasks::Do(const PublishStep& /*command*/) {
  // This thread drops the old snapshot: the next pushes may need its memory.
  stripe_.Publish().reset();
  arithmetic_.Run([this, step = stripe_.latest()->step] {
    JournalStep(step);
    stripe_.EndStep();
    if (storage_ == nullptr) stripe_.ForgetRemovals(step);
    writes_ = false;
    GiveCopies();
  });
}

// ---- Copies ----

void ReplicaTasks::CopyStripe(StripeCopyCallback done) {
  arithmetic_.Run([this, done = std::move(done)] {
    copies_.push_back(done);
    GiveCopies();
  });
}

void ReplicaTasks::GiveCopies() {
  if (copies_.empty() || (writes_ && !ended_)) return;
  const auto copied = Copied();
  for (const StripeCopyCallback& done : std::exchange(copies_, {})) done(copied);
}

absl::StatusOr<std::shared_ptr<const StripeCheckpoint>> ReplicaTasks::Copied() {
  if (ended_) return absl::UnavailableError("this server ends");
  if (stripe_.latest() == nullptr) {
    return MakeError(Reason::kNotInitialized, "the stripe of this server has no parameters yet");
  }
  return std::make_shared<const StripeCheckpoint>(stripe_.Copy());
}

// A reader needs one pass over a tensor, less than a step does.
void ReplicaTasks::Do(const SummarizeTensor& command) {
  arithmetic_.Run([this, command, latest = stripe_.latest()] {
    report_(SummaryReport{command.number, stripe_.Read(command.query, *latest)});
  });
}

// ---- The journal ----

void ReplicaTasks::JournalStep(Step step) {
  const absl::optional<uint64_t> expected = std::exchange(expected_, absl::nullopt);
  if (expected.has_value()) {
    if (replayed_.ok() && *expected != stripe_.checksum())
      replayed_ = OtherBitsError(step, *expected, stripe_.checksum());
  } else if (journal_ != nullptr) {
    StepRecord record;
    record.step = step;
    record.incarnation = incarnation_;
    record.gradients = made_ ? 1 : 0;
    stripe_.Journal(std::move(record));
  }
}

void ReplicaTasks::Do(const ReplayStep& command) {
  arithmetic_.Run([this, command] {
    const absl::Status loaded = LoadSum(command);
    if (replayed_.ok()) replayed_ = loaded;
  });
}

absl::Status ReplicaTasks::LoadSum(const ReplayStep& command) {
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
  stripe_.Load(next->sum.span(), next->rows);
  return absl::OkStatus();
}

void ReplicaTasks::Do(const BeginJournal& command) {
  if (storage_ == nullptr) return;
  arithmetic_.Run([this, command] {
    incarnation_ = command.incarnation;
    journal_ = storage_->StartJournal(command.incarnation, report_);
    stripe_.SetJournal(journal_.get());
  });
}

// ---- Checkpoints ----

// On the executor, as a file takes long to read. Nobody joins meanwhile.
void ReplicaTasks::Do(const LoadCheckpoint& command) {
  arithmetic_.Run([this, command] {
    const absl::StatusOr<Step> journaled = Load(command);
    report_(LoadedReport{journaled.status(), journaled.value_or(Step())});
  });
}

absl::StatusOr<Step> ReplicaTasks::Load(const LoadCheckpoint& command) {
  if (storage_ == nullptr) return NoDirectory();
  const auto loaded = storage_->Load(command.source, *whole_);
  if (!loaded.ok()) return loaded.status();
  const absl::Status restored = stripe_.Restore(*loaded, command.source.step);
  return restored.ok() ? storage_->OpenJournal(command, *whole_) : restored;
}

void ReplicaTasks::Do(const TakeCheckpoint& command) {
  arithmetic_.Run([this, command] {
    const auto checkpoint = std::make_shared<const StripeCheckpoint>(stripe_.Copy());
    if (journal_ != nullptr) journal_->BeginSegment();
    files_.Run([this, command, checkpoint, replayed = replayed_] {
      Save(command, *checkpoint, replayed);
    });
  });
}

// What was not made again to the same bits does not become a checkpoint.
void ReplicaTasks::Save(const TakeCheckpoint& command, const StripeCheckpoint& checkpoint,
                        const absl::Status& replayed) {
  if (!replayed.ok()) return report_(SavedReport{command.step, replayed});
  const absl::StatusOr<uint64_t> saved =
      storage_ == nullptr ? NoDirectory() : storage_->Save(command, *whole_, checkpoint);
  if (saved.ok()) stripe_.ForgetRemovals(command.step);
  report_(SavedReport{command.step, saved.status(), saved.value_or(0)});
}

// After the files of earlier commands. They are removed while the job trains on.
void ReplicaTasks::Do(const KeepCheckpoints& command) {
  if (storage_ == nullptr) return;
  arithmetic_.Run([this, command] { files_.Run([this, command] { storage_->Keep(command); }); });
}

}  // namespace sluice

#include "server/durable/stripe_directory.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/tensor/stripes.h"
#include "server/durable/journal/row_sums_format.h"
#include "server/durable/make_directory.h"
#include "server/durable/one_job.h"
#include "server/durable/this_server.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<StripeDirectory>> StripeDirectory::Open(FileSystem& files,
                                                                       const std::string& directory,
                                                                       StripePlace place,
                                                                       Durability durability) {
  const absl::Status made = MakeDirectory(directory);
  if (!made.ok()) return made;
  auto opened = absl::WrapUnique(new StripeDirectory(files, directory, place, durability));
  auto lock = FileLock::Take(absl::StrCat(directory, "/", kLockName, "-", place.stripe),
                             ThisServer(place, ""));
  if (!lock.ok()) return lock.status();
  opened->lock_ = *std::move(lock);
  auto found = FindFiles(files, directory);
  if (!found.ok()) return found.status();
  opened->found_ = *std::move(found);
  return opened;
}

void StripeDirectory::NoteJob(const std::string& job_id) {
  const absl::Status named = lock_->NameOwner(ThisServer(place_, job_id));
  LOG_IF(WARNING, !named.ok()) << named.message();
}

absl::StatusOr<uint64_t> StripeDirectory::Save(const TakeCheckpoint& checkpoint,
                                               const Layout& whole,
                                               const StripeCheckpoint& stripe) {
  auto saved =
      store_.Save(checkpoint.job_id, {checkpoint.incarnation, checkpoint.step}, whole, stripe);
  if (saved.ok()) {
    LOG(INFO) << "saved this server's part of the checkpoint of step " << checkpoint.step;
  } else {
    LOG(ERROR) << "cannot save this server's part of the checkpoint of step " << checkpoint.step
               << ": " << saved.status().message();
  }
  return saved;
}

absl::StatusOr<StripeCheckpoint> StripeDirectory::Load(const CheckpointSource& checkpoint,
                                                       const Layout& whole) {
  auto loaded = store_.Load(checkpoint, whole);
  LOG_IF(INFO, loaded.ok()) << "loaded this server's part of the checkpoint of step "
                            << checkpoint.step;
  if (loaded.ok()) return loaded;
  LOG(ERROR) << loaded.status().message();
  return absl::Status(
      loaded.status().code(),
      absl::StrCat("cannot load its part of the checkpoint: ", loaded.status().message(),
                   "; restore the file from a copy, or remove the checkpoint-* file of that step "
                   "from the first server's directory, to go on from the one before"));
}

// Reads the journal twice: what it can repeat decides what all servers repeat.
absl::StatusOr<Step> StripeDirectory::OpenJournal(const LoadCheckpoint& checkpoint,
                                                  const Layout& whole) {
  const JournalStart start = {checkpoint.source.incarnation,
                              checkpoint.source.step,
                              checkpoint.begins,
                              place_,
                              Stripes(whole.size(), place_.stripes).SizeOf(place_.stripe),
                              WidthsOf(whole)};
  auto found = JournalCursor::Open(files_, directory_, start);
  if (!found.ok()) return found.status();
  for (;;) {
    const auto step = (*found)->Next();
    if (!step.ok()) {
      return absl::Status(step.status().code(),
                          absl::StrCat("cannot repeat its journal: ", step.status().message()));
    }
    if (!step->has_value()) break;
  }
  auto again = JournalCursor::Open(files_, directory_, start);
  if (!again.ok()) return again.status();
  journaled_ = *std::move(again);
  return (*found)->reached();
}

absl::StatusOr<JournaledSum> StripeDirectory::NextJournaled() {
  auto step = journaled_->Next();
  if (!step.ok()) return step.status();
  if (!step->has_value()) {
    return absl::DataLossError(absl::StrCat("the journal in ", directory_, " ends with step ",
                                            journaled_->reached().value(),
                                            ", and had more when it was opened"));
  }
  const StepRecord& record = (*step)->record;
  return JournaledSum{record.step, record.incarnation, record.checksum, std::move((*step)->sum),
                      std::move((*step)->rows)};
}

std::unique_ptr<StepJournal> StripeDirectory::StartJournal(
    Incarnation incarnation, std::function<void(const JournalReport&)> listener) {
  if (durability_ != Durability::kJournal) return nullptr;
  // Only the journal's thread uses it.
  const auto state = std::make_shared<JournalReport>();
  JournalListener events;
  events.durable = [state, listener](Step step) {
    state->durable = step;
    listener(*state);
  };
  events.journal_error = [state, listener](const absl::Status& why) {
    LOG_IF(ERROR, !why.ok()) << "the journal is not written: " << why.message();
    LOG_IF(INFO, why.ok()) << "the journal is written again";
    state->stopped = why;
    listener(*state);
  };
  events.fatal = EndUnsynced;
  return std::make_unique<Journal>(files_, directory_, incarnation, std::move(events), place_);
}

void StripeDirectory::Keep(const KeepCheckpoints& checkpoints) {
  std::vector<CheckpointName> keep;
  for (const CheckpointKey& key : checkpoints.keep) keep.push_back({key.incarnation, key.step});
  store_.RemoveOthers(keep);
  if (keep.empty()) return;
  const CheckpointName& oldest = keep.back();
  RemoveSegmentsUpTo(files_, directory_, place_, oldest.incarnation, oldest.step);
}

}  // namespace sluice

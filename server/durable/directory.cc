#include "server/durable/directory.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/numbered_name.h"
#include "server/durable/format/checked_line.h"
#include "server/durable/make_directory.h"
#include "server/durable/this_server.h"

namespace sluice {
namespace {

// The prefix of the file that says at which step an incarnation began. It contains the job's id.
constexpr char kIncarnationPrefix[] = "life-";
constexpr char kDurableStep[] = "kept";
constexpr char kReachedStep[] = "reached";

// The time between two attempts to save the first checkpoint.
constexpr absl::Duration kPatience = absl::Milliseconds(200);

}  // namespace

DurableDirectory::DurableDirectory(const DurableOptions& options, FileSystem& files)
    : options_(options),
      files_(files),
      stripes_(files, options.directory, {0, options.servers}),
      checkpoints_(files, options.directory, options.keep_checkpoints, options.servers),
      reached_(files, PathOf(kReachedStep)),
      journal_states_(options.servers) {}

DurableDirectory::~DurableDirectory() { end_.Raise(); }

absl::StatusOr<std::unique_ptr<DurableDirectory>> DurableDirectory::Open(
    const DurableOptions& options, FileSystem& files) {
  const absl::Status made = MakeDirectory(options.directory);
  if (!made.ok()) return made;
  std::unique_ptr<DurableDirectory> directory(new DurableDirectory(options, files));
  auto lock = FileLock::Take(directory->PathOf(kLockName), ThisServer({0, options.servers}, ""));
  if (!lock.ok()) return lock.status();
  directory->lock_ = *std::move(lock);
  // The names of a killed server's files may not be on the disk yet. Once synced, they stay.
  absl::Status read = files.SyncDirectory(options.directory);
  if (!read.ok()) return read;
  auto restored = directory->checkpoints_.LoadNewest();
  if (!restored.ok()) return restored.status();
  directory->restored_ = *std::move(restored);
  {
    absl::MutexLock lock_base(&directory->mu_);
    directory->has_base_ = directory->restored_ != nullptr;
  }
  read = directory->ReadIncarnations();
  if (read.ok()) read = directory->CheckHistory();
  if (read.ok()) read = directory->CheckFiles();
  if (!read.ok()) return read;
  return directory;
}

absl::Status DurableDirectory::CheckFiles() {
  const auto found = FindFiles(files_, options_.directory);
  if (!found.ok()) return found.status();
  // On a full disk an incarnation cannot name its job.
  const bool has_begun = !earlier_incarnations_.empty();
  for (const FoundFile& file : found->files) {
    if (has_begun && job_id_.empty()) job_id_ = file.job_id;
  }
  first_ = {options_.directory, options_.servers, job_id_, has_begun, incarnation_};
  if (restored_ != nullptr) {
    first_.saved_by = std::max<uint32_t>(1, static_cast<uint32_t>(restored_->stripes.size()));
  }
  return CheckOneJob(first_, 0, *found);
}

absl::Status DurableDirectory::RemoveLeftovers() {
  for (const std::string& name : old_begins_) files_.Remove(PathOf(name)).IgnoreError();
  return checkpoints_.RemoveUnfinished();
}

// Chooses this incarnation's number, which is higher than all earlier ones, and takes over their
// job.
absl::Status DurableDirectory::ReadIncarnations() {
  const auto files = files_.List(options_.directory);
  if (!files.ok()) return files.status();
  Incarnation oldest(std::numeric_limits<uint64_t>::max());  // that has a checkpoint
  for (const std::string& file : *files) {
    const auto checkpoint = CheckpointName::Parse(file);
    const auto stripe = StripeName::Parse(file);
    const auto rows = RowsName::Parse(file);
    const auto segment = SegmentName::Parse(file);
    if (checkpoint.has_value()) {
      incarnation_ = std::max(incarnation_, checkpoint->incarnation);
      oldest = std::min(oldest, checkpoint->incarnation);
    }
    if (stripe.has_value()) incarnation_ = std::max(incarnation_, stripe->incarnation);
    if (rows.has_value()) incarnation_ = std::max(incarnation_, rows->incarnation);
    if (segment.has_value()) incarnation_ = std::max(incarnation_, segment->incarnation);
  }
  for (const std::string& file : *files) {
    const auto began = ParseNumberedName(kIncarnationPrefix, file);
    if (!began.has_value()) continue;
    incarnation_ = std::max(incarnation_, began->first);
    job_id_ = ReadCheckedLine(files_, PathOf(file)).value_or(job_id_);
    const bool known = restored_ != nullptr && began->first <= restored_->incarnations.current();
    if (!known) earlier_incarnations_.insert(*began);
    // An older checkpoint needs it, to tell which steps of the journals count after it.
    if (known && began->first <= oldest) old_begins_.push_back(file);
  }
  incarnation_ = incarnation_.Next();
  if (restored_ != nullptr) job_id_ = restored_->job_id;
  return absl::OkStatus();
}

// A later incarnation that could not read this checkpoint began before its step, so the checkpoint
// is not part of the later history.
absl::Status DurableDirectory::CheckHistory() const {
  if (restored_ == nullptr) return absl::OkStatus();
  for (const auto& [incarnation, begin] : earlier_incarnations_) {
    if (begin >= restored_->step) continue;
    return absl::DataLossError(absl::StrCat(
        "the newest checkpoint in ", options_.directory, " is of step ", restored_->step.value(),
        ", but a later server continued from step ", begin.value(),
        " without it; restore that server's checkpoints from a copy, or name another directory"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> DurableDirectory::Replay(const ShardCheckpoint& checkpoint,
                                              const absl::optional<LeastJournaled>& others,
                                              const StepReplay& replay) {
  const absl::Status fits = CheckOtherJournals(checkpoint);
  if (!fits.ok()) return fits;
  const Step durable = ReadDurableStep();
  if (others.has_value() && others->step < durable) {
    return absl::DataLossError(absl::StrCat(
        "step ", durable.value(), " was durable, but server ", others->server, " of ",
        options_.servers, " can repeat its steps only up to step ", others->step.value(),
        "; restore the files of its directory from a copy, or remove the file \"", kDurableStep,
        "\" in ", options_.directory, " to continue without the other steps"));
  }
  const Step last = others.has_value() ? others->step : Step(std::numeric_limits<uint64_t>::max());
  const JournalStart start = StartAfter(checkpoint, earlier_incarnations_, options_.servers);
  const auto reached = ReplayJournal(files_, options_.directory, start, checkpoint, last, replay);
  if (!reached.ok()) return reached;
  if (*reached < durable) {
    return absl::DataLossError(
        absl::StrCat("step ", durable.value(), " was durable, but only step ", reached->value(),
                     " can be repeated from the files in ", options_.directory,
                     "; restore the damaged files from a copy, or remove the file \"", kDurableStep,
                     "\" there to continue without the other steps"));
  }
  if (*reached > checkpoint.step)
    LOG(INFO) << "step " << *reached << " was repeated from the journal";
  return reached;
}

// A journal has sums of stripes, and cannot be cut into others.
absl::Status DurableDirectory::CheckOtherJournals(const ShardCheckpoint& checkpoint) const {
  const auto segments = SegmentsIn(files_, options_.directory);
  if (!segments.ok()) return segments.status();
  std::set<uint32_t> counts;
  for (const SegmentName& segment : *segments) counts.insert(segment.place.stripes);
  counts.erase(options_.servers);
  for (const uint32_t servers : counts) {
    const auto cursor = JournalCursor::Open(files_, options_.directory,
                                            StartAfter(checkpoint, earlier_incarnations_, servers));
    if (!cursor.ok()) return cursor.status();
    const auto next = (*cursor)->Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the journal in ", options_.directory, " has steps after step ", checkpoint.step.value(),
        ", which ", servers, servers == 1 ? " server has" : " servers have",
        " made, and only as many can repeat them, not ", options_.servers,
        "; start as many once more: when they end, they save a checkpoint, from which any number "
        "of servers continues"));
  }
  return absl::OkStatus();
}

absl::Status DurableDirectory::BeginIncarnation(Step begin, const std::string& job_id) {
  if (!HasBase() && ReadDurableStep() > Step()) {
    return absl::DataLossError(absl::StrCat(
        options_.directory, " had step ", ReadDurableStep().value(), ", but holds no checkpoint; ",
        "restore the files from a copy, or name another directory to train from the beginning"));
  }
  const Step reached = reached_.Read();
  if (reached > begin) {
    lost_steps_ = reached.value() - begin.value();
    LOG(WARNING) << "an earlier server had made step " << reached << ": " << lost_steps_
                 << " steps are lost, since the last checkpoint is of step " << begin;
  }
  reached_.Begin(begin);
  const absl::Status named = lock_->NameOwner(ThisServer({0, options_.servers}, job_id));
  LOG_IF(WARNING, !named.ok()) << named.message();
  auto file = files_.Create(PathOf(NumberedName(kIncarnationPrefix, {incarnation_, begin})));
  if (!file.ok()) return file.status();
  // Without the job's id, the workers must be started again if this incarnation ends before its
  // first checkpoint.
  absl::Status noted = (*file)->Append(CheckedLine(job_id));
  LOG_IF(WARNING, !noted.ok()) << noted.message();
  if (noted.ok()) noted = (*file)->Sync();
  if (!noted.ok() && !absl::IsResourceExhausted(noted)) return noted;
  return files_.SyncDirectory(options_.directory);
}

// ---- The journal ----

StepJournal* DurableDirectory::StartJournal(JournalListener listener) {
  if (!journals()) return nullptr;
  listener_ = std::move(listener);
  if (listener_.fatal == nullptr) listener_.fatal = EndUnsynced;
  JournalListener own = listener_;
  own.durable = [this](Step step) { OnDurable(0, step); };
  own.journal_error = [this](const absl::Status& why) { OnStopped(0, why); };
  journal_ = std::make_unique<Journal>(files_, options_.directory, incarnation_, std::move(own),
                                       StripePlace{0, options_.servers});
  return journal_.get();
}

void DurableDirectory::FlushJournal() {
  if (journal_ != nullptr) journal_->Flush();
}

void DurableDirectory::NoteJournal(uint32_t server, Step durable, const absl::Status& stopped) {
  OnStopped(server, stopped);
  OnDurable(server, durable);
}

void DurableDirectory::OnStopped(uint32_t server, const absl::Status& why) {
  absl::MutexLock tell_lock(&tell_mu_);  // the listener hears of the changes in their order
  absl::Status before;
  absl::Status now;
  {
    absl::MutexLock lock(&mu_);
    before = journal_states_.stopped();
    journal_states_.NoteStopped(server, why);
    now = journal_states_.stopped();
  }
  if (before != now) listener_.journal_error(now);
}

void DurableDirectory::OnDurable(uint32_t server, Step step) {
  {
    absl::MutexLock lock(&mu_);
    const Step before = journal_states_.durable();
    journal_states_.NoteDurable(server, step);
    if (journal_states_.durable() == before) return;
  }
  TellDurable();
}

void DurableDirectory::TellDurable() {
  Step durable;
  {
    absl::MutexLock lock(&mu_);
    durable = journal_states_.durable();
    if (!has_base_ || durable == Step()) return;
    WriteDurableStep(durable);
  }
  listener_.durable(durable);
}

// The file is not synced. It only has to survive the process, and an older step in it is true too.
void DurableDirectory::WriteDurableStep(Step step) {
  const std::string unfinished = PathOf(absl::StrCat(kDurableStep, ".new"));
  auto file = files_.Create(unfinished);
  absl::Status written = file.status();
  if (file.ok()) written = (*file)->Append(CheckedLine(absl::StrCat(step.value())));
  if (written.ok()) written = files_.Rename(unfinished, PathOf(kDurableStep));
  LOG_IF_EVERY_N(WARNING, !written.ok(), 1000) << written.message();
}

// Returns 0 if the step is unknown.
Step DurableDirectory::ReadDurableStep() const {
  const auto text = ReadCheckedLine(files_, PathOf(kDurableStep));
  uint64_t step = 0;
  return text.has_value() && absl::SimpleAtoi(*text, &step) ? Step(step) : Step();
}

// First the file that says which steps are durable: without them, the journal may end anywhere. An
// earlier server in the directory may have had a journal, too.
absl::Status DurableDirectory::RemoveJournal() {
  const auto files = files_.List(options_.directory);
  // Another server may still write its own. The next incarnation's begin tells it what counts.
  const auto segments = SegmentsIn(files_, options_.directory, {0, options_.servers});
  if (!files.ok()) return files.status();
  if (!segments.ok()) return segments.status();
  std::vector<std::string> names;
  if (std::count(files->begin(), files->end(), kDurableStep) > 0) names.push_back(kDurableStep);
  for (const SegmentName& segment : *segments) names.push_back(segment.FileName());
  for (const std::string& name : names) {
    const absl::Status removed = files_.Remove(PathOf(name));
    if (!removed.ok()) return removed;
  }
  return files_.SyncDirectory(options_.directory);
}

// ---- Checkpoints ----

void DurableDirectory::Save(std::shared_ptr<const ShardCheckpoint> checkpoint, SaveCallback done) {
  ++saving_;
  executor_.Run([this, checkpoint = std::move(checkpoint), done = std::move(done)] {
    auto saved = SaveNow(*checkpoint);
    --saving_;
    if (done) done(std::move(saved));
  });
}

void DurableDirectory::RunOnExecutor(absl::FunctionRef<void()> task) {
  absl::Notification done;
  executor_.Run([&] {
    task();
    done.Notify();
  });
  done.WaitForNotification();
}

std::string DurableDirectory::NewestBefore(Step suspect_since) {
  std::string path;
  RunOnExecutor([&] {
    const auto name = checkpoints_.NewestBefore(suspect_since);
    if (name.has_value()) path = PathOf(*name);
  });
  return path;
}

absl::optional<CheckpointName> DurableDirectory::FindWayBack(Step suspect_since) {
  absl::optional<CheckpointName> found;
  RunOnExecutor([&] { found = checkpoints_.LoadableBefore(suspect_since); });
  return found;
}

absl::Status DurableDirectory::GoBackTo(const CheckpointName& checkpoint) {
  FlushJournal();
  absl::Status removed;
  RunOnExecutor([&] {
    journal_ = nullptr;
    removed = checkpoints_.CheckIsThere(checkpoint);
    if (removed.ok()) removed = RemoveJournal();
    if (removed.ok()) removed = checkpoints_.RemoveNewer(checkpoint);
  });
  return removed;
}

void DurableDirectory::SaveUnlessBusy(std::shared_ptr<const ShardCheckpoint> checkpoint) {
  if (saving_ > 0) {
    LOG(WARNING) << "step " << checkpoint->step
                 << " gets no checkpoint, since the one before is still "
                 << "being written; make --checkpoint-every larger than " << checkpoint_every();
    return;
  }
  ++saving_;
  SaveBase(std::move(checkpoint));
}

// A new attempt queues behind the other checkpoints that wait.
void DurableDirectory::SaveBase(std::shared_ptr<const ShardCheckpoint> checkpoint) {
  executor_.Run([this, checkpoint = std::move(checkpoint)] {
    const bool again = !SaveNow(*checkpoint).ok() && WaitForBase();
    // What another server could not save, it has no more.
    const bool anew = checkpoint->elsewhere != nullptr;
    if (again && !anew) return SaveBase(checkpoint);
    --saving_;
    if (again) take_another_();
  });
}

// Returns whether to try again to save the checkpoint that the journal needs.
bool DurableDirectory::WaitForBase() {
  if (journal_ == nullptr || HasBase() || checkpoints_.sync_failed()) return false;
  return !end_.WaitFor(kPatience);
}

// Waits for the files of the other servers.
absl::StatusOr<std::string> DurableDirectory::SaveStriped(const ShardCheckpoint& checkpoint) {
  const CheckpointName name = {checkpoint.incarnations.current(), checkpoint.step};
  const auto own = stripes_.Save(checkpoint.job_id, name, *checkpoint.layout, checkpoint);
  if (!own.ok()) return own.status();
  auto checksums = checkpoint.elsewhere->Await();
  if (!checksums.ok()) return checksums.status();
  checksums->insert(checksums->begin(), *own);
  return checkpoints_.SaveStriped(checkpoint, *checksums);
}

void DurableDirectory::TellOthers(KeepListener keep, std::function<void()> take_another) {
  tell_others_ = std::move(keep);
  take_another_ = std::move(take_another);
  RunOnExecutor([this] { KeepWhole(); });
}

void DurableDirectory::KeepWhole() {
  const auto whole = checkpoints_.List();
  if (!whole.ok() || whole->empty()) return;  // the next time
  stripes_.RemoveOthers(*whole);
  if (tell_others_ != nullptr) tell_others_(*whole);
}

absl::StatusOr<SavedCheckpoint> DurableDirectory::SaveNow(const ShardCheckpoint& checkpoint) {
  const absl::Time began = RealClock().Now();
  auto path =
      checkpoint.elsewhere == nullptr ? checkpoints_.Save(checkpoint) : SaveStriped(checkpoint);
  if (!path.ok()) {
    LOG(ERROR) << "cannot save a checkpoint of step " << checkpoint.step << ": "
               << path.status().message();
    if (journal_ != nullptr && checkpoints_.sync_failed()) listener_.fatal(path.status());
    return path.status();
  }
  KeepWhole();
  LOG(INFO) << "saved " << *path << " in " << absl::FormatDuration(RealClock().Now() - began)
            << "; training paused for " << absl::FormatDuration(checkpoint.pause);
  if (journal_ != nullptr) NoteSaved();
  absl::MutexLock lock(&mu_);
  last_saved_ = LastSaved{checkpoint.step, RealClock().Now()};
  return SavedCheckpoint{*std::move(path), checkpoint.step};
}

void DurableDirectory::NoteSaved() {
  journal_->BeginSegment();
  RemoveOldSegments();
  {
    absl::MutexLock lock(&mu_);
    if (has_base_) return;
    has_base_ = true;
  }
  TellDurable();
}

// Removes the segments whose steps are all in the oldest checkpoint. One that is older than
// keep_checkpoints is kept to begin again from there, without the steps that followed.
void DurableDirectory::RemoveOldSegments() {
  const auto checkpoints = checkpoints_.List();
  if (!checkpoints.ok() || checkpoints->empty()) return;  // the next time
  const size_t counted = std::min<size_t>(checkpoints->size(), options_.keep_checkpoints);
  const CheckpointName oldest = (*checkpoints)[counted - 1];
  RemoveSegmentsUpTo(files_, options_.directory, {0, options_.servers}, oldest.incarnation,
                     oldest.step);
}

}  // namespace sluice

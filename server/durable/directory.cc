#include "server/durable/directory.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/numbered_name.h"
#include "server/durable/format/checked_line.h"
#include "server/durable/make_directory.h"
#include "server/durable/this_server.h"

namespace sluice {
namespace {

// The prefix of the file that says at which step an incarnation began. It contains the job's id.
constexpr char kIncarnationPrefix[] = "life-";
constexpr char kReachedStep[] = "reached";

// A later incarnation that could not read this checkpoint began before its step, so the checkpoint
// is not part of the later history.
absl::Status CheckHistory(const ShardCheckpoint& newest, const IncarnationBegins& later,
                          const std::string& directory) {
  for (const auto& [incarnation, begin] : later) {
    if (begin >= newest.step) continue;
    return absl::DataLossError(absl::StrCat(
        "the newest checkpoint in ", directory, " is of step ", newest.step.value(),
        ", but a later server continued from step ", begin.value(),
        " without it; restore that server's checkpoints from a copy, or name another directory"));
  }
  return absl::OkStatus();
}

// A journal has sums of stripes, and cannot be cut into others.
absl::Status CheckOtherJournals(FileSystem& files, const DurableOptions& options,
                                const ShardCheckpoint& checkpoint, const IncarnationBegins& later) {
  const auto segments = SegmentsIn(files, options.directory);
  if (!segments.ok()) return segments.status();
  std::set<uint32_t> counts;
  for (const SegmentName& segment : *segments) counts.insert(segment.place.stripes);
  counts.erase(options.servers);
  for (const uint32_t servers : counts) {
    const auto cursor =
        JournalCursor::Open(files, options.directory, StartAfter(checkpoint, later, servers));
    if (!cursor.ok()) return cursor.status();
    const auto next = (*cursor)->Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the journal in ", options.directory, " has steps after step ", checkpoint.step.value(),
        ", which ", servers, servers == 1 ? " server has" : " servers have",
        " made, and only as many can repeat them, not ", options.servers,
        "; start as many once more: when they end, they save a checkpoint, from which any number "
        "of servers continues"));
  }
  return absl::OkStatus();
}

}  // namespace

DurableDirectory::DurableDirectory(const DurableOptions& options, FileSystem& files)
    : options_(options),
      files_(files),
      checkpoints_(files, options.directory, options.keep_checkpoints, options.servers),
      reached_(files, PathOf(kReachedStep)),
      steps_(files, options_.directory, options.servers),
      saver_(files, options_, checkpoints_, steps_) {}

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
  if (directory->restored_ != nullptr) directory->steps_.SetBase();
  read = directory->ReadIncarnations();
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
  if (restored_ == nullptr) return absl::OkStatus();
  job_id_ = restored_->job_id;
  return CheckHistory(*restored_, earlier_incarnations_, options_.directory);
}

absl::StatusOr<Step> DurableDirectory::Replay(const ShardCheckpoint& checkpoint,
                                              const absl::optional<LeastJournaled>& others,
                                              const StepReplay& replay) {
  const absl::Status fits = CheckOtherJournals(files_, options_, checkpoint, earlier_incarnations_);
  if (!fits.ok()) return fits;
  const Step durable = steps_.ReadKept();
  if (others.has_value() && others->step < durable) {
    return absl::DataLossError(absl::StrCat(
        "step ", durable.value(), " was durable, but server ", others->server, " of ",
        options_.servers, " can repeat its steps only up to step ", others->step.value(),
        "; restore the files of its directory from a copy, or remove the file \"",
        DurableSteps::kFileName, "\" in ", options_.directory,
        " to continue without the other steps"));
  }
  const Step last = others.has_value() ? others->step : Step(std::numeric_limits<uint64_t>::max());
  const JournalStart start = StartAfter(checkpoint, earlier_incarnations_, options_.servers);
  const auto reached = ReplayJournal(files_, options_.directory, start, checkpoint, last, replay);
  if (!reached.ok()) return reached;
  if (*reached < durable) {
    return absl::DataLossError(
        absl::StrCat("step ", durable.value(), " was durable, but only step ", reached->value(),
                     " can be repeated from the files in ", options_.directory,
                     "; restore the damaged files from a copy, or remove the file \"",
                     DurableSteps::kFileName, "\" there to continue without the other steps"));
  }
  if (*reached > checkpoint.step)
    LOG(INFO) << "step " << *reached << " was repeated from the journal";
  return reached;
}

absl::Status DurableDirectory::BeginIncarnation(Step begin, const std::string& job_id) {
  if (!steps_.has_base() && steps_.ReadKept() > Step()) {
    return absl::DataLossError(absl::StrCat(
        options_.directory, " had step ", steps_.ReadKept().value(), ", but holds no checkpoint; ",
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
  if (listener.fatal == nullptr) listener.fatal = EndUnsynced;
  steps_.Listen(std::move(listener.durable), std::move(listener.journal_error));
  listener.durable = [this](Step step) { steps_.NoteDurable(0, step); };
  listener.journal_error = [this](const absl::Status& why) { steps_.NoteStopped(0, why); };
  journal_ = std::make_unique<Journal>(files_, options_.directory, incarnation_, listener,
                                       StripePlace{0, options_.servers});
  saver_.Join(*journal_, std::move(listener.fatal));
  return journal_.get();
}

void DurableDirectory::FlushJournal() {
  if (journal_ != nullptr) journal_->Flush();
}

void DurableDirectory::NoteJournal(uint32_t server, Step durable, const absl::Status& stopped) {
  steps_.NoteStopped(server, stopped);
  steps_.NoteDurable(server, durable);
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
  if (std::count(files->begin(), files->end(), DurableSteps::kFileName) > 0)
    names.push_back(DurableSteps::kFileName);
  for (const SegmentName& segment : *segments) names.push_back(segment.FileName());
  for (const std::string& name : names) {
    const absl::Status removed = files_.Remove(PathOf(name));
    if (!removed.ok()) return removed;
  }
  return files_.SyncDirectory(options_.directory);
}

absl::Status DurableDirectory::GoBackTo(const CheckpointName& checkpoint) {
  FlushJournal();
  return saver_.GoBackTo(checkpoint, [this] {
    journal_ = nullptr;
    return RemoveJournal();
  });
}

}  // namespace sluice

#include "server/durable/checkpoint_saver.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"

namespace sluice {
namespace {

// The time between two attempts to save the first checkpoint.
constexpr absl::Duration kPatience = absl::Milliseconds(200);

}  // namespace

CheckpointSaver::CheckpointSaver(FileSystem& files, const DurableOptions& options,
                                 CheckpointStore& checkpoints, DurableSteps& steps)
    : files_(files),
      options_(options),
      checkpoints_(checkpoints),
      steps_(steps),
      stripes_(files, options.directory, {0, options.servers}) {}

void CheckpointSaver::Join(Journal& journal, std::function<void(const absl::Status&)> fatal) {
  journal_ = &journal;
  fatal_ = std::move(fatal);
}

void CheckpointSaver::TellOthers(KeepListener keep, std::function<void()> take_another) {
  tell_others_ = std::move(keep);
  take_another_ = std::move(take_another);
  RunOnExecutor([this] { KeepWhole(); });
}

void CheckpointSaver::RunOnExecutor(absl::FunctionRef<void()> task) {
  absl::Notification done;
  executor_.Run([&] {
    task();
    done.Notify();
  });
  done.WaitForNotification();
}

void CheckpointSaver::Save(std::shared_ptr<const ShardCheckpoint> checkpoint, SaveCallback done) {
  ++saving_;
  executor_.Run([this, checkpoint = std::move(checkpoint), done = std::move(done)] {
    auto saved = SaveNow(*checkpoint);
    --saving_;
    if (done) done(std::move(saved));
  });
}

void CheckpointSaver::SaveUnlessBusy(std::shared_ptr<const ShardCheckpoint> checkpoint) {
  if (saving_ > 0) {
    LOG(WARNING) << "step " << checkpoint->step
                 << " gets no checkpoint, since the one before is still "
                 << "being written; make --checkpoint-every larger than "
                 << options_.checkpoint_every;
    return;
  }
  ++saving_;
  SaveBase(std::move(checkpoint));
}

// A new attempt queues behind the other checkpoints that wait.
void CheckpointSaver::SaveBase(std::shared_ptr<const ShardCheckpoint> checkpoint) {
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
bool CheckpointSaver::WaitForBase() {
  if (journal_ == nullptr || steps_.has_base() || checkpoints_.sync_failed()) return false;
  return !end_.WaitFor(kPatience);
}

absl::StatusOr<SavedCheckpoint> CheckpointSaver::SaveNow(const ShardCheckpoint& checkpoint) {
  const absl::Time began = RealClock().Now();
  auto path =
      checkpoint.elsewhere == nullptr ? checkpoints_.Save(checkpoint) : SaveStriped(checkpoint);
  if (!path.ok()) {
    LOG(ERROR) << "cannot save a checkpoint of step " << checkpoint.step << ": "
               << path.status().message();
    if (journal_ != nullptr && checkpoints_.sync_failed()) fatal_(path.status());
    return path.status();
  }
  KeepWhole();
  LOG(INFO) << "saved " << *path << " in " << absl::FormatDuration(RealClock().Now() - began)
            << "; training paused for " << absl::FormatDuration(checkpoint.pause);
  if (journal_ != nullptr) {
    journal_->BeginSegment();
    RemoveOldSegments();
    steps_.SetBase();
  }
  absl::MutexLock lock(&mu_);
  last_saved_ = LastSaved{checkpoint.step, RealClock().Now()};
  return SavedCheckpoint{*std::move(path), checkpoint.step};
}

// Waits for the files of the other servers.
absl::StatusOr<std::string> CheckpointSaver::SaveStriped(const ShardCheckpoint& checkpoint) {
  const CheckpointName name = {checkpoint.incarnations.current(), checkpoint.step};
  const auto own = stripes_.Save(checkpoint.job_id, name, *checkpoint.layout, checkpoint);
  if (!own.ok()) return own.status();
  auto checksums = checkpoint.elsewhere->Await();
  if (!checksums.ok()) return checksums.status();
  checksums->insert(checksums->begin(), *own);
  return checkpoints_.SaveStriped(checkpoint, *checksums);
}

void CheckpointSaver::KeepWhole() {
  const auto whole = checkpoints_.List();
  if (!whole.ok() || whole->empty()) return;  // the next time
  stripes_.RemoveOthers(*whole);
  if (tell_others_ != nullptr) tell_others_(*whole);
}

// Removes the segments whose steps are all in the oldest checkpoint. One that is older than
// keep_checkpoints is kept to begin again from there, without the steps that followed.
void CheckpointSaver::RemoveOldSegments() {
  const auto checkpoints = checkpoints_.List();
  if (!checkpoints.ok() || checkpoints->empty()) return;  // the next time
  const size_t counted = std::min<size_t>(checkpoints->size(), options_.keep_checkpoints);
  const CheckpointName oldest = (*checkpoints)[counted - 1];
  RemoveSegmentsUpTo(files_, options_.directory, {0, options_.servers}, oldest.incarnation,
                     oldest.step);
}

absl::optional<LastSaved> CheckpointSaver::last_saved() const {
  absl::MutexLock lock(&mu_);
  return last_saved_;
}

std::string CheckpointSaver::NewestBefore(Step suspect_since) {
  std::string path;
  RunOnExecutor([&] {
    const auto name = checkpoints_.NewestBefore(suspect_since);
    if (name.has_value()) path = PathOf(*name);
  });
  return path;
}

absl::optional<CheckpointName> CheckpointSaver::FindWayBack(Step suspect_since) {
  absl::optional<CheckpointName> found;
  RunOnExecutor([&] { found = checkpoints_.LoadableBefore(suspect_since); });
  return found;
}

absl::Status CheckpointSaver::GoBackTo(const CheckpointName& checkpoint,
                                       absl::FunctionRef<absl::Status()> remove_journal) {
  absl::Status removed;
  RunOnExecutor([&] {
    removed = checkpoints_.CheckIsThere(checkpoint);
    if (!removed.ok()) return;
    journal_ = nullptr;
    removed = remove_journal();
    if (removed.ok()) removed = checkpoints_.RemoveNewer(checkpoint);
  });
  return removed;
}

}  // namespace sluice

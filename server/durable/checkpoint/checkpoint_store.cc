#include "server/durable/checkpoint/checkpoint_store.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/progress_line.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/whole_checkpoint.h"
#include "server/durable/format/unfinished_file.h"

namespace sluice {
namespace {

// The first of `names` that is from before the suspect steps, or their end.
std::vector<CheckpointName>::const_iterator FindBefore(const std::vector<CheckpointName>& names,
                                                       Step suspect_since) {
  return std::find_if(names.begin(), names.end(), [suspect_since](const CheckpointName& name) {
    return name.step.Next() < suspect_since;
  });
}

}  // namespace

absl::StatusOr<std::string> CheckpointStore::Save(const ShardCheckpoint& checkpoint) {
  std::vector<RowFile> row_files;
  const RowSnapshot* const rows = checkpoint.parameters->rows.get();
  if (rows != nullptr) {
    auto saved = rows_.Save({checkpoint.job_id, checkpoint.incarnations.current(), checkpoint.step,
                             *checkpoint.layout, checkpoint.row_slots},
                            *rows);
    if (!saved.ok()) return saved.status();
    row_files = *std::move(saved);
  }
  return Write(checkpoint, [&](WritableFile& file) {
    return WriteCheckpoint(checkpoint, file, kMostSafeTensorsHeader, row_files);
  });
}

absl::StatusOr<std::string> CheckpointStore::SaveStriped(const ShardCheckpoint& checkpoint,
                                                         const std::vector<uint64_t>& stripes) {
  return Write(checkpoint, [&](WritableFile& file) {
    return WriteStripedCheckpoint(checkpoint, stripes, file);
  });
}

absl::StatusOr<std::string> CheckpointStore::Write(
    const ShardCheckpoint& checkpoint, absl::FunctionRef<absl::Status(WritableFile&)> write) {
  if (sync_failed()) return sync_.error();
  const std::string path =
      PathOf(CheckpointName{checkpoint.incarnations.current(), checkpoint.step}.FileName());
  absl::Status saved = WriteThenName(files_, path, write);
  if (saved.ok()) saved = sync_.Sync();
  if (!saved.ok()) return saved;
  RemoveOld(checkpoint.suspect_since);
  return path;
}

void CheckpointStore::RemoveOld(absl::optional<Step> suspect_since) {
  const auto names = List();
  if (!names.ok()) return;  // the next Save() tries again
  if (names->size() <= keep_) return;
  const auto pinned = suspect_since.has_value() ? FindBefore(*names, *suspect_since) : names->end();
  for (auto name = names->begin() + keep_; name != names->end(); ++name) {
    if (name == pinned) continue;
    const absl::Status removed = files_.Remove(PathOf(name->FileName()));
    if (!removed.ok()) LOG(WARNING) << removed.message();
  }
}

absl::StatusOr<std::vector<CheckpointName>> CheckpointStore::List() const {
  const auto files = files_.List(directory_);
  if (!files.ok()) return files.status();
  std::vector<CheckpointName> names;
  for (const std::string& file : *files) {
    const auto name = CheckpointName::Parse(file);
    if (name.has_value()) names.push_back(*name);
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

absl::optional<CheckpointName> CheckpointStore::NewestBefore(Step suspect_since) const {
  const auto names = List();
  if (!names.ok()) return absl::nullopt;
  const auto newest = FindBefore(*names, suspect_since);
  if (newest == names->end()) return absl::nullopt;
  return *newest;
}

absl::optional<CheckpointName> CheckpointStore::LoadableBefore(Step suspect_since) const {
  const auto names = List();
  if (!names.ok()) return absl::nullopt;
  const auto loads = [this](const CheckpointName& name) {
    const absl::Status loaded = Load(name).status();
    LOG_IF(ERROR, !loaded.ok()) << loaded.message();
    return loaded.ok();
  };
  const auto found = std::find_if(FindBefore(*names, suspect_since), names->end(), loads);
  if (found == names->end()) return absl::nullopt;
  return *found;
}

absl::Status CheckpointStore::CheckIsThere(const CheckpointName& name) const {
  const auto names = List();
  if (!names.ok()) return names.status();
  for (const CheckpointName& other : *names) {
    if (other.FileName() == name.FileName()) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(PathOf(name.FileName()), " is not there any more"));
}

absl::Status CheckpointStore::RemoveNewer(const CheckpointName& name) {
  const auto names = List();
  if (!names.ok()) return names.status();
  for (const CheckpointName& other : *names) {
    if (!(name < other)) break;
    const absl::Status removed = files_.Remove(PathOf(other.FileName()));
    if (!removed.ok()) return removed;
  }
  return sync_.Sync();
}

CheckpointPlace CheckpointStore::PlaceOf(const CheckpointName& name) const {
  return sluice::PlaceOf(PathOf(name.FileName()), others_);
}

absl::StatusOr<ShardCheckpoint> CheckpointStore::Read(const CheckpointPlace& place) const {
  if (servers_ == 1) return ReadWholeCheckpoint(files_, place, ProgressOutput::InLog());
  return ReadStripeOfCheckpoint(files_, place, {0, servers_});
}

absl::StatusOr<ShardCheckpoint> CheckpointStore::Load(const CheckpointName& name) const {
  const std::string path = PathOf(name.FileName());
  auto checkpoint = Read(PlaceOf(name));
  if (absl::IsDataLoss(checkpoint.status())) {
    return absl::DataLossError(absl::StrCat(path, ": ", checkpoint.status().message()));
  }
  if (!checkpoint.ok()) return checkpoint;  // the error names the path
  if (checkpoint->incarnations.current() != name.incarnation || checkpoint->step != name.step) {
    return absl::DataLossError(absl::StrCat(
        path, " holds step ", checkpoint->step.value(), " of incarnation ",
        checkpoint->incarnations.current().value(), ", which is not what its name says"));
  }
  return checkpoint;
}

absl::StatusOr<std::unique_ptr<ShardCheckpoint>> CheckpointStore::LoadNewest() const {
  const auto names = List();
  if (!names.ok()) return names.status();
  std::string problems;
  for (const CheckpointName& name : *names) {
    auto checkpoint = Load(name);
    if (checkpoint.ok()) {
      LOG(INFO) << "continuing at step " << checkpoint->step << " of job " << checkpoint->job_id
                << ", from " << PathOf(name.FileName());
      return std::make_unique<ShardCheckpoint>(*std::move(checkpoint));
    }
    // Another error may be temporary. An older checkpoint must not take this one's place then.
    if (!absl::IsDataLoss(checkpoint.status())) return checkpoint.status();
    LOG(ERROR) << checkpoint.status().message();
    absl::StrAppend(&problems, "\n  ", checkpoint.status().message());
  }
  if (problems.empty()) return std::unique_ptr<ShardCheckpoint>();
  return absl::DataLossError(absl::StrCat(
      "none of the checkpoints in ", directory_, " can be loaded:", problems,
      "\nrestore one of them from a copy, or name another directory to train from the beginning"));
}

absl::Status CheckpointStore::RemoveUnfinished() {
  const auto files = files_.List(directory_);
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) {
    if (!absl::EndsWith(file, kUnfinished)) continue;
    const absl::Status removed = files_.Remove(PathOf(file));
    if (!removed.ok()) return removed;
  }
  return absl::OkStatus();
}

}  // namespace sluice

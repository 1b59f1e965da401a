#include "tools/evaluate/directory_source.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/storage/file_lock.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_follower.h"
#include "server/durable/checkpoint/whole_checkpoint.h"
#include "server/durable/this_server.h"

namespace sluice {
namespace {

// Rows that the checkpoint does not have are as they began.
absl::Status PutRows(const FollowedCheckpoint& followed, Evaluator& model) {
  if (model.wanted_rows().empty()) return absl::OkStatus();
  const auto checkpoint = ReadRowsOfCheckpoint(RealFileSystem(), followed.place);
  if (!checkpoint.ok()) return checkpoint.status();
  model.SetFirstRows();
  return checkpoint->rows->ForEach([&](uint32_t table, const StoredRow& row) {
    if (row.elements.empty()) return;  // an id that waits for its admission
    model.SetRow(table, row.id, row.elements.first(model.layout().tables()[table].width));
  });
}

absl::Status Put(const FollowedCheckpoint& checkpoint, Evaluator& model) {
  const absl::Status same = CheckSameLayout(*checkpoint.checkpoint.layout, model.layout());
  if (!same.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        checkpoint.place.file, " is of another model; give its --model: ", same.message()));
  }
  const absl::Span<const float> values = checkpoint.checkpoint.parameters->values.span();
  std::copy(values.begin(), values.end(), model.values().begin());
  return PutRows(checkpoint, model);
}

class DirectorySource final : public ParameterSource {
 public:
  // `directories` has at least one, that of the first server.
  DirectorySource(const DirectoryOptions& options, const std::vector<std::string>& directories)
      : options_(options),
        first_(directories.front()),
        follower_(RealFileSystem(), first_, {directories.begin() + 1, directories.end()}) {}

  absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) override {
    for (;; absl::SleepFor(options_.interval)) {
      // Checked before the names are read: once no server runs, the names include all it saved.
      const auto held = FileLock::IsHeld(absl::StrCat(first_, "/", kLockName));
      if (!held.ok()) return held.status();
      const auto next = follower_.Next(options_.every, options_.once || !*held);
      if (!next.ok()) return next.status();
      if (*held || *next != nullptr) abandoned_since_.reset();
      if (*next != nullptr) return Give(**next, model);
      if (options_.once) return absl::optional<ParametersId>();
      if (*held) continue;
      const auto over = IsOver();
      if (!over.ok()) return over.status();
      if (*over) return absl::optional<ParametersId>();
    }
  }

 private:
  static absl::StatusOr<absl::optional<ParametersId>> Give(const FollowedCheckpoint& followed,
                                                           Evaluator& model) {
    const absl::Status put = Put(followed, model);
    if (!put.ok()) return put;
    const ShardCheckpoint& checkpoint = followed.checkpoint;
    return absl::make_optional(
        ParametersId{followed.place.file, checkpoint.incarnations.current(), checkpoint.step});
  }

  // Called when no server holds the directory and all its checkpoints were given.
  absl::StatusOr<bool> IsOver() {
    const absl::Time now = RealClock().Now();
    if (!abandoned_since_.has_value()) {
      abandoned_since_ = now;
      return follower_.HasEnded();
    }
    if (now - *abandoned_since_ < options_.patience) return false;
    return absl::DeadlineExceededError(absl::StrCat(
        "no server has used ", first_, " for ", absl::FormatDuration(options_.patience),
        ", and its newest checkpoint does not say that training had ended; start the server again, "
        "or evaluate what is there with --once"));
  }

  const DirectoryOptions options_;
  const std::string first_;  // the directory of the first server
  CheckpointFollower follower_;
  absl::optional<absl::Time> abandoned_since_;  // since when no server holds it and nothing is left
};

}  // namespace

std::unique_ptr<ParameterSource> MakeDirectorySource(const DirectoryOptions& options) {
  const std::vector<std::string> directories = WordsOfName(RealFileSystem(), options.directory);
  return std::make_unique<DirectorySource>(
      options, directories.empty() ? std::vector<std::string>{options.directory} : directories);
}

}  // namespace sluice

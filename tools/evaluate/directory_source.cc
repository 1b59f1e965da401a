#include "tools/evaluate/directory_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/storage/file_lock.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_follower.h"
#include "server/durable/directory.h"

namespace sluice {
namespace {

absl::Status Put(const FollowedCheckpoint& checkpoint, Evaluator& model) {
  const absl::Status same = CheckSameLayout(*checkpoint.checkpoint.layout, model.layout());
  if (!same.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint.path, " is of another model; give its --model: ", same.message()));
  }
  const absl::Span<const float> values = checkpoint.checkpoint.parameters->values.span();
  std::copy(values.begin(), values.end(), model.values().begin());
  return absl::OkStatus();
}

class DirectorySource final : public ParameterSource {
 public:
  explicit DirectorySource(const DirectoryOptions& options)
      : options_(options), follower_(RealFileSystem(), options.directory) {}

  absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) override {
    for (;; absl::SleepFor(options_.interval)) {
      // Looked at before the names are: what a server that is gone has saved is among them.
      const auto held = FileLock::IsHeld(absl::StrCat(options_.directory, "/", kLockName));
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
  static absl::StatusOr<absl::optional<ParametersId>> Give(const FollowedCheckpoint& checkpoint,
                                                           Evaluator& model) {
    const absl::Status put = Put(checkpoint, model);
    if (!put.ok()) return put;
    const ShardCheckpoint& checkpoint = checkpoint.checkpoint;
    return absl::make_optional(
        ParametersId{checkpoint.path, checkpoint.incarnations.current(), checkpoint.step});
  }

  // Of a directory that nobody holds, whose checkpoints have been given.
  absl::StatusOr<bool> IsOver() {
    const absl::Time now = absl::Now();
    if (!abandoned_since_.has_value()) {
      abandoned_since_ = now;
      return follower_.HasEnded();
    }
    if (now - *abandoned_since_ < options_.patience) return false;
    return absl::DeadlineExceededError(absl::StrCat(
        "no server has used ", options_.directory, " for ", absl::FormatDuration(options_.patience),
        ", and its newest checkpoint does not say that training had ended; start the server again, "
        "or evaluate what is there with --once"));
  }

  const DirectoryOptions options_;
  CheckpointFollower follower_;
  absl::optional<absl::Time> abandoned_since_;  // nobody holds it, and nothing is left to be given
};

}  // namespace

std::unique_ptr<ParameterSource> MakeDirectorySource(const DirectoryOptions& options) {
  return std::make_unique<DirectorySource>(options);
}

}  // namespace sluice

#include "server/durable/recovery.h"

#include <glog/logging.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/checkpoint/file_names.h"
#include "server/durable/save_checkpoint.h"

namespace sluice {
namespace {

absl::StatusOr<Step> Restore(DurableDirectory& directory, Shard& shard) {
  const std::unique_ptr<const ShardCheckpoint> checkpoint = directory.TakeRestored();
  if (checkpoint == nullptr) {
    const absl::Status tidy = directory.RemoveLeftovers();
    return tidy.ok() ? absl::StatusOr<Step>(Step()) : tidy;
  }
  const absl::Status restored =
      shard.durability().Restore(*checkpoint, directory.earlier_incarnations());
  if (!restored.ok()) return restored;
  absl::optional<LeastJournaled> others;
  if (shard.store().is_striped()) {
    const auto loaded = shard.durability().AwaitLoaded();
    if (!loaded.ok()) return loaded.status();
    others = *loaded;
  }
  // Not before: if another server's part is missing, no file is changed.
  const absl::Status tidy = directory.RemoveLeftovers();
  if (!tidy.ok()) return tidy;
  const auto reached = directory.Replay(*checkpoint, others, [&](const JournaledStep& step) {
    return shard.durability().Replay(step.record, step.sum.span(), step.rows);
  });
  if (!reached.ok()) return reached;
  shard.durability().BeginIncarnation(directory.earlier_incarnations());
  // The replayed steps may not be on the disk yet: an earlier incarnation may have ended before it
  // synced them. The steps of a new launch follow a checkpoint that says so.
  const uint32_t launched = checkpoint->launched_workers;
  const ShardStatus state = shard.Describe();
  const bool trains_on = checkpoint->finished && !state.ended_before;
  const bool same_launch = !trains_on && (launched == 0 || launched == state.expected_workers);
  if (*reached > checkpoint->step || !same_launch) {
    const absl::Status saved = SaveCheckpointAndWait(shard, directory);
    if (!saved.ok()) return saved;
  }
  return reached;
}

absl::Status JournalStopped(const absl::Status& why) {
  if (why.ok()) return absl::OkStatus();
  return MakeError(Reason::kJournalStopped,
                   absl::StrCat("the server ", why.message(),
                                "; it takes pushes again when it can write its journal"));
}

void StartJournal(DurableDirectory& directory, Shard& shard,
                  std::function<void(const absl::Status&)> fatal) {
  JournalListener listener;
  listener.fatal = std::move(fatal);
  listener.durable = [&shard](Step step) { shard.durability().OnDurable(step); };
  listener.journal_error = [&shard](const absl::Status& why) {
    const absl::Status stopped = JournalStopped(why);
    // Workers whose pushes wait for the journal get no answer meanwhile, so the log tells.
    LOG_IF(ERROR, !stopped.ok()) << stopped.message();
    LOG_IF(INFO, stopped.ok()) << "the journal is written again";
    shard.durability().SetJournalError(stopped);
  };
  listener.on_span = shard.store().on_span();
  StepJournal* const journal = directory.StartJournal(std::move(listener));
  if (journal != nullptr) {
    shard.durability().EnableJournal(journal);
  } else {
    shard.durability().SetStepListener([&directory](Step step) { directory.NoteStep(step); });
  }
}

void SaveEnd(DurableDirectory& directory, Shard& shard) {
  if (shard.Describe().ended_before) {
    LOG(INFO) << "training had ended, and is over unless workers join";
  }
  shard.durability().SaveEndWith(
      [&](const absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>& end) {
        if (!end.ok()) return shard.durability().OnEndSaved(end.status());
        const Step step = (*end)->step;
        directory.saver().Save(*end, [&shard, step](const absl::StatusOr<SavedCheckpoint>& saved) {
          shard.durability().OnEndSaved(saved.ok() ? absl::StatusOr<Step>(step) : saved.status());
        });
      });
}

}  // namespace

absl::Status Recover(DurableDirectory& directory, Shard& shard,
                     std::function<void(const absl::Status&)> fatal) {
  const auto reached = Restore(directory, shard);
  if (!reached.ok()) return reached.status();
  const absl::Status begun = directory.BeginIncarnation(*reached, shard.Describe().job_id);
  if (!begun.ok()) return begun;
  shard.durability().SetLostSteps(directory.lost_steps());
  StartJournal(directory, shard, std::move(fatal));
  const auto save =
      [&directory](const absl::StatusOr<std::shared_ptr<const ShardCheckpoint>>& checkpoint) {
        if (checkpoint.ok())
          directory.saver().SaveUnlessBusy(*checkpoint);  // periodic ones never fail
      };
  directory.saver().TellOthers(
      [&shard](const std::vector<CheckpointName>& whole) {
        std::vector<CheckpointKey> keep;
        for (const CheckpointName& name : whole) keep.push_back({name.incarnation, name.step});
        shard.durability().KeepCheckpoints(std::move(keep));
      },
      [&shard, save] { shard.durability().TakeCheckpoint(save); });
  shard.durability().TakeCheckpoints(directory.checkpoint_every(), save);
  SaveEnd(directory, shard);
  return absl::OkStatus();
}

}  // namespace sluice

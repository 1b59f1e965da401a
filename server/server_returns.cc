// The part of Server that goes back to a checkpoint, in the same process.

#include <glog/logging.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "server/admission/draining.h"
#include "server/server.h"

namespace sluice {
namespace {

// The most returns of a job. Each halves the learning rate; less than an eighth would not help.
constexpr int kMostReturns = 3;
// How long calls that are under way may take to end before it goes back.
constexpr absl::Duration kLastCalls = absl::Milliseconds(100);

// The sentence of the divergence that lasts.
std::string DivergenceOf(const ShardStatus& state) {
  for (const TrainingWarning& warning : state.warnings) {
    const bool diverges = warning.kind == WarningKind::kNotFinite ||
                          warning.kind == WarningKind::kParametersGrow ||
                          warning.kind == WarningKind::kLossRises;
    if (diverges && !warning.over.has_value()) return warning.text;
  }
  return "training diverges";
}

TrainingWarning WentBack(const ShardStatus& state, Step since, const std::string& checkpoint) {
  std::string slower;
  if (state.base_learning_rate > 0) {  // else the workers apply their own optimizers
    slower = absl::StrCat(", with the learning rate ", state.base_learning_rate / 2,
                          " in place of ", state.base_learning_rate);
  }
  const std::string text =
      absl::StrCat("training has gone back from step ", state.step.value(), " to ", checkpoint,
                   slower, ", because ", DivergenceOf(state));
  return {WarningKind::kWentBack, since, absl::nullopt, text};
}

}  // namespace

// Goes on from the newest checkpoint that is from before the suspect steps, with half the learning
// rate. Ends the job if there is none, or if that has not helped often enough. Returns whether the
// job goes on. An error leaves no incarnation.
absl::StatusOr<bool> Server::GoBack(const ShardStatus& state) {
  const Step since = state.suspect_since.value_or(state.step);
  Shard& shard = incarnation_->shard();
  DurableDirectory& durable = *incarnation_->durable();
  const auto checkpoint = durable.FindWayBack(since);  // takes time, in which training goes on
  if (!checkpoint.has_value() || returns_ == kMostReturns) {
    const std::string why = checkpoint.has_value()
                                ? absl::StrCat("the server has gone back ", returns_, " times")
                                : "no checkpoint from before can be loaded";
    LOG(ERROR) << "the job ends: " << why;
    shard.Drain(DivergedError(absl::StrCat(DivergenceOf(state), "; ", why)));
    return true;
  }
  // Workers join again, as after a crash.
  const absl::Status why = absl::UnavailableError("the server goes back to a checkpoint");
  if (!shard.Suspend(why)) return true;
  incarnation_->Shutdown(why, kLastCalls);
  // Meanwhile the last worker may have left, or an operator may have ended the job.
  if (incarnation_->drained() || shard.Describe().workers == 0) {
    shard.Drain();
    return false;
  }
  ++returns_;
  options_.shard.warnings = {WentBack(state, since, durable.PathOf(*checkpoint))};
  LOG(WARNING) << options_.shard.warnings[0].text;
  options_.shard.goes_on = true;
  const absl::Status removed = durable.GoBackTo(*checkpoint);
  EndForNext();
  if (!removed.ok()) return removed;
  auto again = ServerIncarnation::Start(options_, trace_.get(), state);
  if (!again.ok()) return again.status();
  TakeIncarnation(*std::move(again));
  return true;
}

// Another server was started again, and its part of the parameters is lost. All servers continue
// from the newest checkpoint and their journals, as after a crash of all. Returns and fails as
// GoBack() does.
absl::StatusOr<bool> Server::GoBackForReplica(const ReplicaLoss& loss) {
  Shard& shard = incarnation_->shard();
  const bool repeats = options_.durable.durability == Durability::kJournal;
  const absl::Status why = absl::UnavailableError(
      absl::StrCat(loss.why, "; all servers go back to the last checkpoint",
                   repeats ? ", and repeat the steps of their journals" : ""));
  LOG(WARNING) << why.message();
  incarnation_->StopWaiting(why);
  const ShardStatus state = shard.Describe();
  if (incarnation_->drained()) return false;
  shard.Suspend(why);  // unless there are no workers
  incarnation_->Shutdown(why, kLastCalls);
  if (incarnation_->drained()) return false;
  options_.shard.goes_on = options_.shard.goes_on || state.phase == Phase::kTraining;
  EndForNext();
  auto again = ServerIncarnation::Start(options_, trace_.get());
  if (!again.ok()) return again.status();
  TakeIncarnation(*std::move(again));
  return true;
}

// Ends an incarnation that was shut down, and its lock of the directory. The next one has other
// session numbers.
void Server::EndForNext() {
  options_.shard.session_base = SessionId(RandomNonce().value() >> 1);
  options_.shard.launched = Launched::kAgain;
  operator_page_.Detach();
  metrics_.Detach();
  incarnation_ = nullptr;
  BeginSpans();
}

}  // namespace sluice

// The part of Server that ends the job.

#include <glog/logging.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "common/base/error.h"
#include "server/admission/draining.h"
#include "server/closing_table.h"
#include "server/durable/save_checkpoint.h"
#include "server/observe/server_state.h"
#include "server/server.h"
#include "server/stop_signals.h"

namespace sluice {
namespace {

constexpr int kNotRestored = 1;
constexpr int kReplicaLost = 1;
constexpr int kEveryWorkerLost = 3;
constexpr int kUnbalancedCounters = 4;
constexpr int kNotSaved = 5;
constexpr int kDiverged = 7;
constexpr int kNotFinite = 8;
// So many steps after the first suspect one, the log says that the last checkpoint is suspect.
constexpr uint64_t kSuspiciousSteps = 10;

bool AnyLeftInGoodOrder(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.role == SessionRole::kWorker && record.presence == Presence::kLeft;
  });
}

// Whether workers ended because their gradients were refused. Only if no worker left in good order.
bool AnyWasNotFinite(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(),
                     [](const SessionRecord& record) { return record.not_finite; });
}

// Why the job ends with that code, which says that no worker has left in good order.
std::string WhyLost(int code, const std::vector<SessionRecord>& sessions) {
  constexpr size_t kMostNames = 4;
  std::vector<std::string> failures;
  for (const SessionRecord& record : sessions) {
    if (record.role == SessionRole::kWorker) failures.push_back(record.DescribeFailure());
  }
  const size_t more = failures.size() - std::min(failures.size(), kMostNames);
  failures.resize(failures.size() - more);
  return absl::StrCat(
      code == kNotFinite
          ? "every worker has ended, and gradients that were not finite were refused before; lower "
            "the learning rate, give --clip-norm or --skip-not-finite, or look for the batch that "
            "caused it: "
          : "every worker was lost: ",
      absl::StrJoin(failures, "; "), more > 0 ? absl::StrCat("; and ", more, " more") : "");
}

bool AnyIsPresent(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.presence == Presence::kPresent;
  });
}

}  // namespace

int Server::Serve() {
  const absl::StatusOr<int> signal = AwaitEnd();
  if (!signal.ok()) {
    LOG(ERROR) << "the server cannot go back: " << signal.status().message();
    return kNotRestored;
  }
  Shard& shard = incarnation_->shard();
  const bool finished = shard.Describe().phase == Phase::kFinished;
  if (*signal != 0) {
    LOG(INFO) << "draining after " << strsignal(*signal);
    shard.Drain();
  }
  const std::string lost = LostReplica(finished);
  if (!lost.empty()) {
    LOG(ERROR) << lost;
    shard.Drain(MakeError(Reason::kDraining, lost));
  }
  if (shard.Describe().diverged) AwaitFarewell();
  const int outcome = lost.empty() ? Outcome(finished) : kReplicaLost;
  // Afterwards the other servers are gone; alone, this one may still make a step.
  absl::Status saved;
  if (options_.servers > 1 && lost.empty()) {
    saved = SaveLast();
    if (!shard.recovers()) crc_ = shard.Digest(options_.grace);
  }
  EndReplicas(saved.ok() ? outcome : kNotSaved);
  // Nobody needs the socket's name any more, and a launcher may kill this process soon.
  directory_.reset();
  if (page_ != nullptr) page_->Show(Moment(shard.Describe(), /*going_down=*/true));
  incarnation_->Shutdown(DrainingError(), options_.grace);
  if (options_.servers == 1) {
    saved = SaveLast();
    crc_ = shard.Digest(options_.grace);
  }
  if (page_ != nullptr) page_->End(Moment(shard.Describe(), /*going_down=*/true));
  event_files_->End([&] { return Moment(shard.Describe()); });
  const PushCounters counters = shard.Describe().counters;
  if (!counters.Balanced() || counters.in_progress > 0) {
    LOG(ERROR) << "the counters of pushes do not balance; this is a bug of the server";
    return kUnbalancedCounters;
  }
  if (!saved.ok()) return kNotSaved;
  if (outcome == kEveryWorkerLost || outcome == kNotFinite) {
    LOG(ERROR) << (left_alone_ ? "all other ranks of the launch have ended, and none has joined"
                               : WhyLost(outcome, shard.Sessions()));
  }
  return outcome;
}

// The exit code, as far as it is known before the last calls have ended.
int Server::Outcome(bool finished) const {
  if (left_alone_) return kEveryWorkerLost;
  if (shard().Describe().diverged) return kDiverged;
  const std::vector<SessionRecord> sessions = shard().Sessions();
  const bool well = shard().Describe().ended_before || AnyLeftInGoodOrder(sessions);
  if (!finished || well) return 0;
  return AnyWasNotFinite(sessions) ? kNotFinite : kEveryWorkerLost;
}

// Why a server that was lost ends the job; empty: it does not. Without that server all workers may
// be lost, too, before its lease is over.
std::string Server::LostReplica(bool finished) const {
  if (shard().Describe().end_is_saved) return "";
  const std::string away = incarnation_->away_replica();
  if (away.empty() || Outcome(finished) != kEveryWorkerLost) {
    return incarnation_->lost_replica().why;
  }
  return absl::StrCat(away, ", and every worker was lost; the job cannot go on");
}

// The other servers end when they have heard it. One that is away hears nothing.
void Server::EndReplicas(int exit_code) {
  incarnation_->EndReplicas(exit_code);
  const absl::Time until = RealClock().Now() + options_.grace;
  while (!incarnation_->ReplicasHaveEnded() && RealClock().Now() < until) WaitForStopSignal();
}

// Each worker and observer hears with its next call why the job ends, and goes. One that has not
// called for the time of a lease is not waited for.
void Server::AwaitFarewell() {
  const absl::Time until = RealClock().Now() + options_.shard.lease;
  while (AnyIsPresent(shard().Sessions()) && RealClock().Now() < until &&
         WaitForStopSignal() == 0) {
    incarnation_->Tick();
  }
}

// Saves a checkpoint of the last step, if there are parameters; but if training diverged, the
// directory keeps what was saved before.
absl::Status Server::SaveLast() {
  DurableDirectory* const durable = incarnation_->durable();
  if (durable == nullptr || shard().snapshot() == nullptr) return absl::OkStatus();
  if (shard().recovers()) {
    LOG(INFO) << "no last checkpoint is saved, because the servers have not restored their state";
    return absl::OkStatus();
  }
  const ShardStatus state = shard().Describe();
  if (state.diverged) {
    LOG(WARNING) << "no last checkpoint is saved, because training diverged" << HowToGoBack(state);
    return absl::OkStatus();
  }
  const bool all_are_there =
      incarnation_->away_replica().empty() && incarnation_->lost_replica().why.empty();
  absl::Status saved;
  if (!state.end_is_complete && (all_are_there || !state.end_is_saved)) {
    saved = options_.servers == 1 ? SaveCheckpointAndWait(incarnation_->shard(), *durable)
                                  : SaveWithReplicas();
  }
  const Step since = state.suspect_since.value_or(state.step);
  if (saved.ok() && state.step.value() - since.value() >= kSuspiciousSteps) {
    LOG(WARNING) << "the last checkpoint may be a bad one, because training seems to diverge"
                 << HowToGoBack(state);
  }
  return saved;
}

// Fails if another server is lost meanwhile.
absl::Status Server::SaveWithReplicas() {
  const auto done = std::make_shared<absl::Notification>();
  const auto result = std::make_shared<absl::Status>();
  SaveCheckpoint(incarnation_->shard(), *incarnation_->durable(),
                 [done, result](absl::StatusOr<SavedCheckpoint> saved) {
                   *result = std::move(saved).status();
                   done->Notify();
                 });
  while (!done->HasBeenNotified()) {
    WaitForStopSignal();
    incarnation_->Tick();
    const ReplicaLoss lost = incarnation_->lost_replica();
    if (lost.why.empty()) continue;
    LOG(ERROR) << "cannot save the last checkpoint: " << lost.why;
    incarnation_->StopWaiting(absl::UnavailableError(lost.why));
    return absl::UnavailableError(lost.why);
  }
  return *result;
}

// How to leave the suspect steps out, if there are any.
std::string Server::HowToGoBack(const ShardStatus& state) {
  if (!state.suspect_since.has_value()) return "";
  const std::string since = absl::StrCat(" since step ", state.suspect_since->value());
  const std::string better = incarnation_->durable()->NewestBefore(*state.suspect_since);
  if (better.empty()) return absl::StrCat(since, "; no checkpoint is from before");
  return absl::StrCat(
      since, "; the newest checkpoint from before is ", better,
      ": a server that is started with this directory continues from there if you "
      "remove the later ones",
      incarnation_->durable()->journals() ? " and the files journal-* and kept" : "");
}

std::string Server::ClosingTable() const {
  if (incarnation_ == nullptr) return "";
  return sluice::ClosingTable(ToProto(shard().Describe()), shard().results(), crc_);
}

}  // namespace sluice

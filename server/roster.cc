#include "server/roster.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {

Roster::Roster(const ShardOptions& options, JobListener owner)
    : options_(options), owner_(std::move(owner)), sessions_(options.max_sessions) {}

absl::StatusOr<SessionRecord*> Roster::Join(const JoinRequest& request, JobListener listener,
                                            Step active_from, absl::Time now) {
  const absl::Status adopted = Adopt(request);
  if (!adopted.ok()) return adopted;
  const auto record = sessions_.Open(request, active_from);
  if (!record.ok()) return record.status();
  (*record)->listener = std::move(listener);
  if (!first_join_.has_value()) first_join_ = now;
  return record;
}

absl::Status Roster::Adopt(const JoinRequest& request) {
  if (!request.job_id.empty() && request.job_id != options_.job_id) {
    return MakeError(
        Reason::kWrongJob,
        absl::StrCat("this server runs job \"", options_.job_id, "\", not \"",
                     absl::CEscape(request.job_id.substr(0, 64)), "\"; check the address"));
  }
  if (layout_ != nullptr) {
    const absl::Status same = CheckSameLayout(*layout_, request.layout);
    if (!same.ok() || request.role == SessionRole::kObserver) return same;
    return CheckSameOptimizer(optimizer_, request.optimizer);
  }
  if (request.role == SessionRole::kObserver) {
    return MakeError(Reason::kNotInitialized, "no worker has joined yet; observe later");
  }
  if (request.layout.size() > options_.max_elements) {
    return MakeError(
        Reason::kModelTooLarge,
        absl::StrCat("this worker's model has ", request.layout.size(), " elements, more than the ",
                     options_.max_elements, " for which this server has memory"));
  }
  layout_ = std::make_shared<const Layout>(request.layout);
  optimizer_ = request.optimizer;
  return absl::OkStatus();
}

void Roster::Lose(SessionId session, absl::Time now) {
  const auto record = sessions_.Find(session);
  if (!record.ok()) return;
  (*record)->presence = Presence::kLost;
  (*record)->lost_at = now;
  (*record)->listener = nullptr;
}

absl::Status Roster::Leave(SessionId session) {
  const auto record = sessions_.Find(session);
  if (!record.ok()) return record.status();
  (*record)->presence = Presence::kLeft;
  (*record)->listener = nullptr;
  return absl::OkStatus();
}

void Roster::Update(absl::Time now) {
  sessions_.EvictLostBefore(now - options_.lease);
  if (started_ || !first_join_.has_value()) return;
  const bool waited = now - *first_join_ >= options_.start_timeout;
  started_ = waited || sessions_.CountKnown(SessionRole::kWorker) >= options_.expected_workers;
}

void Roster::CheckFinished(Step step, Completions* completions) {
  const bool finished = started_ && sessions_.CountAlive(SessionRole::kWorker) == 0;
  if (finished && !finished_) Announce({JobEvent::Kind::kTrainingFinished, step}, completions);
  finished_ = finished;
  const bool deserted = finished && sessions_.CountAlive(SessionRole::kObserver) == 0;
  if (deserted && !deserted_ && owner_) {
    completions->Add([owner = owner_, step] { owner({JobEvent::Kind::kDeserted, step}); });
  }
  deserted_ = deserted;
}

StepProgress Roster::Progress(Step step, uint32_t accumulated) const {
  StepProgress progress;
  progress.started = started_;
  progress.accumulated = accumulated;
  progress.members = sessions_.CountMembers(step);
  progress.missing = sessions_.CountMissing(step);
  return progress;
}

void Roster::Describe(ShardState* state) const {
  state->workers = sessions_.CountAlive(SessionRole::kWorker);
  state->observers = sessions_.CountAlive(SessionRole::kObserver);
  state->optimizer = optimizer_;
  if (layout_ == nullptr) return;
  state->tensors = layout_->ranges().size();
  state->elements = layout_->size();
}

void Roster::Announce(const JobEvent& event, Completions* completions) const {
  for (JobListener& listener : sessions_.Listeners()) {
    completions->Add([listener = std::move(listener), event] { listener(event); });
  }
  if (owner_) completions->Add([owner = owner_, event] { owner(event); });
}

}  // namespace sluice

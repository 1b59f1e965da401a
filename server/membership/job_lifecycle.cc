#include "server/membership/job_lifecycle.h"

#include "common/base/error.h"
#include "server/membership/session_queries.h"

namespace sluice {

absl::Status JobLifecycle::CheckInitialized() const {
  if (initialized()) return absl::OkStatus();
  return MakeError(Reason::kNotInitialized, "the server has no parameters; initialize them first");
}

bool JobLifecycle::suspended() const { return draining() && ReasonOf(serving_) == Reason::kNone; }

bool JobLifecycle::AwaitsEnd() const {
  if (end_ == End::kNever || end_ == End::kSaved || draining() || !initialized()) return false;
  return roster_.IsOver(clock_.Now()) && AnyWorkerLeft(roster_.sessions().records());
}

bool JobLifecycle::BeginsToSaveEnd() {
  if (end_ == End::kNever) return false;
  if (!roster_.IsOver(clock_.Now())) end_ = End::kUnsaved;
  if (end_ != End::kUnsaved || !AwaitsEnd()) return false;
  end_ = End::kSaving;
  end_was_observed_ = roster_.sessions().census().open(SessionRole::kObserver) > 0;
  return true;
}

void JobLifecycle::OnEndSaved(const absl::StatusOr<Step>& saved, Step latest) {
  if (end_ != End::kSaving) return;
  if (!saved.ok()) return ForgetEnd();
  end_ = *saved == latest ? End::kSaved : End::kUnsaved;
}

void JobLifecycle::ForgetEnd() {
  if (end_ != End::kSaved) end_ = End::kNever;
}

Phase JobLifecycle::phase() const {
  if (draining()) return Phase::kDraining;
  if (roster_.finished()) return Phase::kFinished;
  return roster_.started() && initialized() ? Phase::kTraining : Phase::kWaitingForWorkers;
}

void JobLifecycle::Describe(ShardStatus* state) const {
  state->phase = phase();
  state->times.initialized = initialized_;
  state->end_is_saved = end_ == End::kSaved && roster_.finished();
  state->end_is_complete = state->end_is_saved && !end_was_observed_;
  state->diverged = ReasonOf(serving_) == Reason::kDiverged;
}

}  // namespace sluice

#include "server/admission/pull_queue.h"

#include <algorithm>
#include <utility>

namespace sluice {

PullResult PullQueue::Answer(const PullRequest& request,
                             const std::shared_ptr<const Snapshot>& latest,
                             const PullContext& context) {
  PullResult result;
  result.header.step = latest->step;
  result.header.incarnation = incarnation_;
  result.header.learning_rate = context.learning_rate;
  result.header.last = context.last;
  result.header.not_modified = request.have_step == latest->step;
  if (!result.header.not_modified) {
    result.header.inconsistent = context.inconsistent && !request.whole;
    result.snapshot = latest;
    bytes_answered_ += latest->values.size() * sizeof(float);
  }
  return result;
}

PullId PullQueue::Add(const PullRequest& request, PullCallback done) {
  last_id_ = last_id_.Next();
  waiting_.emplace(last_id_, Waiting{request, std::move(done), absl::nullopt});
  return last_id_;
}

void PullQueue::Serve(const std::shared_ptr<const Snapshot>& latest, const PullContext& context,
                      const PullJudge& judge, absl::Time now, Completions* completions) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& pull = it->second;
    const absl::StatusOr<PullTurn> turn = judge(pull.request);
    if (turn.ok() && *turn != PullTurn::kNow) {
      const bool held_up = *turn == PullTurn::kHeldUp;
      if (held_up && !pull.held_up_since.has_value()) pull.held_up_since = now;
      ++it;
      continue;
    }
    absl::StatusOr<PullResult> result;
    if (turn.ok()) {
      result = Answer(pull.request, latest, context);
    } else {
      result = turn.status();
    }
    completions->Add([done = std::move(pull.done), result = std::move(result)] { done(result); });
    it = waiting_.erase(it);
  }
}

void PullQueue::RestartHoldUp(absl::Time now) {
  for (auto& entry : waiting_) {
    if (entry.second.held_up_since.has_value()) entry.second.held_up_since = now;
  }
}

absl::optional<absl::Time> PullQueue::held_up_since() const {
  absl::optional<absl::Time> since;
  for (const auto& entry : waiting_) {
    const absl::optional<absl::Time>& held = entry.second.held_up_since;
    if (held.has_value()) since = std::min(since.value_or(*held), *held);
  }
  return since;
}

}  // namespace sluice

#include "server/admission/pull_queue.h"

#include <utility>

namespace sluice {

PullResult PullQueue::Release(const PullRequest& request, const PullContext& context) {
  PullHeader header;
  header.step = context.step;
  header.incarnation = incarnation_;
  header.learning_rate = context.learning_rate;
  header.last = context.last;
  header.not_modified = request.have_step == context.step;
  if (!header.not_modified) {
    header.inconsistent = context.inconsistent && !request.whole;
    bytes_answered_ += request.row_bytes.value_or(context.bytes);
  }
  return release_(request, header);
}

PullId PullQueue::Add(const PullRequest& request, PullCallback done) {
  last_id_ = last_id_.Next();
  waiting_.emplace(last_id_, Waiting{request, std::move(done), absl::nullopt});
  of_session_.emplace(request.session, last_id_);
  due_.insert(last_id_);
  return last_id_;
}

absl::optional<PullRequest> PullQueue::Cancel(PullId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return absl::nullopt;
  const PullRequest request = found->second.request;
  due_.erase(id);
  Remove(found);
  return request;
}

void PullQueue::Remove(Queue::iterator pull) {
  of_session_.erase({pull->second.request.session, pull->first});
  awaiting_step_.erase(pull->first);
  HoldUp(pull->second, absl::nullopt);
  waiting_.erase(pull);
}

void PullQueue::Note(const PullConditions& now) {
  const PullConditions before = std::exchange(conditions_, now);
  if (now.serving != before.serving || now.ended_sessions != before.ended_sessions ||
      now.ends != before.ends) {
    NoteAll();
  } else if (now.step != before.step || now.initialized != before.initialized ||
             now.completes != before.completes || now.slowest != before.slowest) {
    due_.insert(awaiting_step_.begin(), awaiting_step_.end());
  }
}

void PullQueue::NoteSession(SessionId session) {
  for (auto it = of_session_.lower_bound({session, PullId()});
       it != of_session_.end() && it->first == session; ++it) {
    due_.insert(it->second);
  }
}

void PullQueue::NoteAll() {
  for (const auto& entry : waiting_) due_.insert(entry.first);
}

void PullQueue::Serve(const PullContext& context, const PullJudge& judge, absl::Time now,
                      Completions* completions) {
  for (const PullId id : std::exchange(due_, {})) {
    const auto found = waiting_.find(id);
    Waiting& pull = found->second;
    const absl::StatusOr<PullTurn> turn = judge(pull.request);
    if (turn.ok() && *turn != PullTurn::kNow) {
      Await(*turn, now, id, pull);
      continue;
    }
    absl::StatusOr<PullResult> result;
    if (turn.ok()) {
      result = Release(pull.request, context);
    } else {
      result = turn.status();
    }
    completions->Add([done = std::move(pull.done), result = std::move(result)] { done(result); });
    Remove(found);
  }
}

void PullQueue::Await(PullTurn turn, absl::Time now, PullId id, Waiting& pull) {
  if (turn == PullTurn::kAwaitsPush) {
    awaiting_step_.erase(id);
  } else {
    awaiting_step_.insert(id);
  }
  if (turn == PullTurn::kHeldUp && !pull.held_up_since.has_value()) HoldUp(pull, now);
}

// Sets since when the pull is held up.
void PullQueue::HoldUp(Waiting& pull, absl::optional<absl::Time> since) {
  if (pull.held_up_since.has_value()) held_up_.erase(held_up_.find(*pull.held_up_since));
  pull.held_up_since = since;
  if (since.has_value()) held_up_.insert(*since);
}

void PullQueue::RestartHoldUp(absl::Time now) {
  for (auto& entry : waiting_) {
    if (entry.second.held_up_since.has_value()) HoldUp(entry.second, now);
  }
}

}  // namespace sluice

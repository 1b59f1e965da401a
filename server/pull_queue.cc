#include "server/pull_queue.h"

#include <utility>

namespace sluice {

PullResult PullQueue::Answer(const PullRequest& request,
                             const std::shared_ptr<const Snapshot>& latest) {
  PullResult result;
  result.header.step = latest->step;
  result.header.incarnation = incarnation_;
  result.header.not_modified = request.have_step == latest->step;
  if (!result.header.not_modified) {
    result.snapshot = latest;
    bytes_answered_ += latest->values.size() * sizeof(float);
  }
  return result;
}

PullId PullQueue::Add(const PullRequest& request, PullCallback done) {
  last_id_ = last_id_.Next();
  waiting_.emplace(last_id_, Waiting{request, std::move(done)});
  return last_id_;
}

void PullQueue::Publish(const std::shared_ptr<const Snapshot>& latest, Completions* completions) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& pull = it->second;
    if (pull.request.min_step > latest->step) {
      ++it;
      continue;
    }
    completions->Add(
        [done = std::move(pull.done), result = Answer(pull.request, latest)] { done(result); });
    it = waiting_.erase(it);
  }
}

void PullQueue::FailAll(const absl::Status& status, Completions* completions) {
  for (auto& entry : waiting_) {
    completions->Add([done = std::move(entry.second.done), status] { done(status); });
  }
  waiting_.clear();
}

}  // namespace sluice

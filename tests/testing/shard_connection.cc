#include "tests/testing/shard_connection.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

// Whether one more of those that are to fail is due.
bool Takes(int& failures) {
  if (failures == 0) return false;
  --failures;
  return true;
}

// One pull, shared with the shard that answers it.
struct Answer {
  absl::Notification given;
  absl::StatusOr<PullResult> result = absl::UnknownError("not answered");
};

class ShardPull final : public PendingPull {
 public:
  ShardPull(Shard& shard, const PullRequest& request, bool late) : shard_(shard), late_(late) {
    id_ = shard_.Pull(request, [answer = answer_](absl::StatusOr<PullResult> result) {
      answer->result = std::move(result);
      answer->given.Notify();
    });
  }
  ~ShardPull() override { shard_.CancelPull(id_); }

  absl::StatusOr<PullHeader> Read(absl::Span<float> parameters) override {
    if (late_) return absl::DeadlineExceededError("Deadline Exceeded");
    answer_->given.WaitForNotification();
    const absl::StatusOr<PullResult>& result = answer_->result;
    if (!result.ok()) return result.status();
    if (result->header.not_modified) return result->header;
    const absl::Span<const float> values = result->snapshot->values.span();
    std::copy(values.begin(), values.end(), parameters.begin());
    return result->header;
  }

 private:
  Shard& shard_;
  const bool late_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  PullId id_;
};

}  // namespace

// What the shard told, until somebody asks.
class ShardConnection::Events {
 public:
  void Tell(const JobEvent& event) {
    absl::MutexLock lock(&mu_);
    told_.push_back(event);
  }

  JobEvent Take() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::deque<JobEvent>* told) { return !told->empty(); }, &told_));
    const JobEvent event = told_.front();
    told_.pop_front();
    return event;
  }

 private:
  absl::Mutex mu_;
  std::deque<JobEvent> told_ ABSL_GUARDED_BY(mu_);
};

ShardConnection::ShardConnection(Shard& shard)
    : shard_(&shard), events_(std::make_shared<Events>()) {}

ShardConnection::~ShardConnection() { shard_->ConnectionLost(session_); }

absl::StatusOr<Welcome> ShardConnection::Join(const JoinRequest& request) {
  ++joins_;
  if (Takes(broken_joins_)) return Break();
  shard_->ConnectionLost(session_);  // the earlier session, if any
  auto welcome =
      shard_->Join(request, [events = events_](const JobEvent& event) { events->Tell(event); });
  if (welcome.ok()) session_ = welcome->session;
  return welcome;
}

absl::Status ShardConnection::Reconnect() {
  ++reconnects_;
  if (!server_lost_) return absl::OkStatus();
  return absl::UnavailableError("the server did not come back");
}

// The shard sees the session's stream end.
absl::Status ShardConnection::Break() {
  shard_->ConnectionLost(session_);
  return absl::UnavailableError("the connection broke");
}

absl::StatusOr<JobEvent> ShardConnection::NextEvent() { return events_->Take(); }

absl::StatusOr<InitializeOutcome> ShardConnection::Initialize(SessionId session,
                                                              const SharedFloats& parameters) {
  if (before_initialize_) before_initialize_();
  auto start = shard_->BeginInitialize(session);
  if (!start.ok()) return start.status();
  if (start->parameters == nullptr) return start->answer;
  const absl::Status added = start->parameters->Add(ChunkOf(0, parameters.values));
  if (!added.ok()) return added;
  return shard_->FinishInitialize(std::move(start->parameters));
}

absl::StatusOr<PushOutcome> ShardConnection::Push(const PushHeader& header,
                                                  const SharedFloats& gradient) {
  if (server_lost_ || Takes(broken_pushes_)) return Break();
  auto answer = PushToShard(header, gradient.values);
  if (Takes(lost_answers_)) return Break();
  return answer;
}

absl::StatusOr<PushOutcome> ShardConnection::PushToShard(const PushHeader& header,
                                                         absl::Span<const float> gradient) {
  absl::Notification let_in;
  absl::StatusOr<PushStart> start = absl::UnknownError("not told");
  shard_->BeginPush(header, [&](absl::StatusOr<PushStart> told) {
    start = std::move(told);
    let_in.Notify();
  });
  let_in.WaitForNotification();
  if (!start.ok()) return start.status();
  if (start->push == nullptr) return start->answer;
  const absl::Status added = start->push->Add(ChunkOf(0, gradient));
  absl::Notification judged;
  absl::StatusOr<PushOutcome> answer = absl::UnknownError("not answered");
  const PushCallback done = [&](absl::StatusOr<PushOutcome> outcome) {
    answer = std::move(outcome);
    judged.Notify();
  };
  if (added.ok()) {
    shard_->FinishPush(std::move(start->push), done);
  } else {
    shard_->RefusePush(std::move(start->push), added, done);
  }
  judged.WaitForNotification();
  return answer;
}

std::unique_ptr<PendingPull> ShardConnection::StartPull(const PullRequest& request) {
  ++pulls_;
  return std::make_unique<ShardPull>(*shard_, request, Takes(delayed_pulls_));
}

absl::Status ShardConnection::Leave(SessionId session, const Results& results) {
  return shard_->Leave(session, results).status();
}

}  // namespace sluice

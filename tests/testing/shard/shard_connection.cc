#include "tests/testing/shard/shard_connection.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "tests/testing/shard/finish_offer.h"
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
struct PullAnswer {
  // The first answer counts.
  void Give(absl::StatusOr<PullResult> answer) {
    absl::MutexLock lock(&mu);
    if (given.HasBeenNotified()) return;
    result = std::move(answer);
    given.Notify();
  }

  absl::Mutex mu;
  absl::Notification given;
  absl::StatusOr<PullResult> result = absl::UnknownError("not answered");
};

class BrokenPull final : public PendingPull {
 public:
  explicit BrokenPull(absl::Status why) : why_(std::move(why)) {}
  absl::StatusOr<PullHeader> Read(const StripeSpan<float>&) override { return why_; }
  void Cancel() override {}
  bool wrote() const override { return false; }
  Transfer transfer() const override { return {}; }

 private:
  const absl::Status why_;
};

}  // namespace

// Holds the shard's events until NextEvent() takes them.
class ShardConnection::Events {
 public:
  void Tell(const JobEvent& event) {
    absl::MutexLock lock(&mu_);
    told_.push_back(event);
  }

  absl::StatusOr<JobEvent> Take(absl::Duration longest) {
    absl::MutexLock lock(&mu_);
    if (longest < absl::InfiniteDuration() && !TellsOrIsBroken()) {
      return absl::DeadlineExceededError("nothing happened to the job");
    }
    mu_.Await(absl::Condition(this, &Events::TellsOrIsBroken));
    if (told_.empty()) return absl::UnavailableError("the connection broke");
    const JobEvent event = told_.front();
    told_.pop_front();
    return event;
  }

  void SetBroken(bool broken) {
    absl::MutexLock lock(&mu_);
    broken_ = broken;
  }

 private:
  bool TellsOrIsBroken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return broken_ || !told_.empty();
  }

  absl::Mutex mu_;
  std::deque<JobEvent> told_ ABSL_GUARDED_BY(mu_);
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
};

ShardConnection::ShardConnection(Shard& shard)
    : shard_(&shard), events_(std::make_shared<Events>()) {}

ShardConnection::~ShardConnection() { shard_->ConnectionLost(session_); }

absl::StatusOr<Welcome> ShardConnection::Join(const JoinRequest& request) {
  ++joins_;
  if (Takes(broken_joins_)) return Break();
  shard_->ConnectionLost(session_);  // the earlier session, if any
  events_->SetBroken(false);
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
  events_->SetBroken(true);
  return absl::UnavailableError("the connection broke");
}

absl::StatusOr<JobEvent> ShardConnection::NextEvent(absl::Duration longest) {
  return events_->Take(longest);
}

void ShardConnection::AwaitRetry(absl::Duration) {
  if (on_await_retry_) on_await_retry_();
}

// An offer to the shard, which answers at once.
class ShardConnection::Offer final : public PendingOffer {
 public:
  Offer(ShardConnection& connection, SessionId session)
      : connection_(connection), session_(session) {}

  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) override {
    const auto act = connection_.before_initialize_;  // a copy, since it may set another
    if (act) act();
    if (Takes(connection_.delayed_offers_)) return absl::DeadlineExceededError("Deadline Exceeded");
    auto start = connection_.shard_->store().BeginInitialize(session_);
    if (!start.ok()) return start.status();
    if (start->parameters == nullptr) return start->answer;
    Values values(parameters.size());
    Gather(parameters, 0, values.size(), values.data());
    // A vector without elements has no chunk.
    const absl::Status added =
        values.empty() ? absl::OkStatus() : start->parameters->Add(ChunkOf(0, values));
    if (!added.ok()) return added;
    return FinishOffer(*connection_.shard_, std::move(start->parameters));
  }

  void Cancel() override {}

 private:
  ShardConnection& connection_;
  const SessionId session_;
};

std::unique_ptr<PendingOffer> ShardConnection::StartOffer(SessionId session, uint32_t /*attempt*/,
                                                          uint64_t /*elements*/) {
  return std::make_unique<Offer>(*this, session);
}

// A push into the shard, which may tell of it when this is gone.
class ShardConnection::Push final : public OutgoingPush {
 public:
  Push(ShardConnection& connection, const PushHeader& header, uint64_t elements, BatchIs batch,
       const RowGradients& rows)
      : connection_(connection), shard_(*connection.shard_), batch_(batch) {
    late_ = !connection.server_lost_ && Takes(connection.delayed_pushes_);
    broken_ = late_ || connection.server_lost_ || Takes(connection.broken_pushes_);
    cut_ = !broken_ && Takes(connection.cut_pushes_);
    if (broken_) return;
    shard_.store().BeginPush(
        header,
        [state = state_](absl::StatusOr<PushStart> start) {
          state->start = std::move(start);
          state->let_in.Notify();
        },
        [state = state_] { state->ended = true; });
    SendRows(elements, rows);
  }

  ~Push() override {
    if (GoesOn()) shard_.store().AbandonPush(std::move(state_->start->push), Abandoned::kAborted);
  }

  bool Send(uint64_t offset, const SharedFloats& part) override {
    return part.values.empty() ? GoesOn() : Add(ChunkOf(offset, part.values));
  }

  void Cancel() override {}

  Transfer transfer() const override { return {}; }

  bool SendEncoded(const EncodedChunk& chunk, uint64_t /*taken*/) override {
    TensorChunk encoded;
    encoded.offset = chunk.offset;
    encoded.encoded = chunk;
    return Add(std::move(encoded));
  }

  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    if (late_) return absl::DeadlineExceededError("Deadline Exceeded");
    if (!GoesOn() && !broken_) return HeaderAnswer();
    if (broken_ || state_->ended) {
      if (state_->ended) return absl::UnavailableError("the server ended the call");
      return connection_.Break();
    }
    PendingPush& push = *state_->start->push;
    if (added_.ok() && batch_ == BatchIs::kInSummary) added_ = push.Summarize(summary);
    auto answer = std::make_shared<PushAnswer>();
    const PushCallback done = [answer](absl::StatusOr<PushOutcome> outcome) {
      answer->outcome = std::move(outcome);
      answer->given.Notify();
    };
    if (added_.ok()) {
      shard_.store().FinishPush(std::move(state_->start->push), done);
    } else {
      shard_.store().RefusePush(std::move(state_->start->push), added_, done);
    }
    answer->given.WaitForNotification();
    if (Takes(connection_.lost_answers_)) return connection_.Break();
    return answer->outcome;
  }

 private:
  struct State {
    absl::Notification let_in;
    absl::StatusOr<PushStart> start = absl::UnknownError("not told");
    std::atomic<bool> ended{false};
  };
  struct PushAnswer {
    absl::Notification given;
    absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not answered");
  };

  void SendRows(uint64_t elements, const RowGradients& rows) {
    if (rows.empty() || !GoesOn()) return;
    for (const RowGradient& gradient : rows) {
      if (added_.ok()) added_ = state_->start->push->AddIds(gradient.rows);
    }
    uint64_t offset = elements;
    for (const RowGradient& gradient : rows) {
      Send(offset, gradient.values);
      offset += gradient.values.values.size();
    }
  }

  bool Add(TensorChunk chunk) {
    if (!GoesOn() || state_->ended || !added_.ok()) return false;
    added_ = state_->start->push->Add(std::move(chunk), nullptr, &transforms_);
    broken_ = broken_ || cut_;
    return added_.ok() && !broken_;
  }

  // Whether it was let in, and is not over.
  bool GoesOn() const {
    if (!state_->let_in.HasBeenNotified() && broken_) return false;
    state_->let_in.WaitForNotification();
    return state_->start.ok() && state_->start->push != nullptr;
  }

  absl::StatusOr<PushOutcome> HeaderAnswer() {
    if (Takes(connection_.lost_answers_)) return connection_.Break();
    if (!state_->start.ok()) return state_->start.status();
    return state_->start->answer;
  }

  ShardConnection& connection_;
  Shard& shard_;
  const BatchIs batch_;
  bool late_ = false;
  bool broken_ = false;
  bool cut_ = false;
  absl::Status added_;
  const TransformRegistry transforms_ = BuiltinTransforms();
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A pull from the shard, which may answer it when this is gone.
class ShardConnection::Pull final : public PendingPull {
 public:
  Pull(ShardConnection& connection, const PullRequest& request)
      : connection_(connection),
        shard_(*connection.shard_),
        late_(Takes(connection.delayed_pulls_)) {
    id_ = shard_.store().Pull(request, [answer = answer_](absl::StatusOr<PullResult> result) {
      answer->Give(std::move(result));
    });
  }
  ~Pull() override { shard_.store().CancelPull(id_); }

  void Cancel() override { answer_->Give(absl::CancelledError("cancelled")); }

  absl::StatusOr<PullResult> Await() {
    if (late_) return absl::DeadlineExceededError("Deadline Exceeded");
    answer_->given.WaitForNotification();
    return answer_->result;
  }

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& parameters) override {
    const absl::StatusOr<PullResult> result = Await();
    if (!result.ok()) return result.status();
    if (result->header.not_modified) return result->header;
    wrote_ = true;
    const absl::Span<const float> values = result->snapshot->values.span();
    const bool torn = connection_.torn_pull_ != nullptr;
    const float* next = values.data();
    parameters.ForEachPiece(0, torn ? values.size() / 2 : values.size(), [&](absl::Span<float> to) {
      std::copy_n(next, to.size(), to.begin());
      next += to.size();
    });
    if (!torn) return result->header;
    const absl::Status why = connection_.Break();
    std::exchange(connection_.torn_pull_, nullptr)();
    return why;
  }

  bool wrote() const override { return wrote_; }
  Transfer transfer() const override { return {}; }

 private:
  ShardConnection& connection_;
  Shard& shard_;
  const bool late_;
  bool wrote_ = false;
  const std::shared_ptr<PullAnswer> answer_ = std::make_shared<PullAnswer>();
  PullId id_;
};

// A pull of rows, which is answered at once or fails.
class ShardConnection::RowPull final : public PendingPull {
 public:
  RowPull(std::unique_ptr<Pull> pull, std::shared_ptr<const Layout> layout,
          std::vector<RowIds> rows)
      : pull_(std::move(pull)), layout_(std::move(layout)), rows_(std::move(rows)) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& rows) override {
    const auto result = pull_->Await();
    if (!result.ok()) return result.status();
    absl::Span<float> to = *rows.OnePiece(0, rows.size());
    for (const RowIds& of_table : rows_) {
      const size_t size = of_table.ids.size() * layout_->tables()[of_table.table].width;
      result->snapshot->rows->Read(of_table.table, of_table.ids, to.subspan(0, size));
      to.remove_prefix(size);
    }
    return result->header;
  }
  void Cancel() override { pull_->Cancel(); }
  bool wrote() const override { return true; }
  Transfer transfer() const override { return {}; }

 private:
  const std::unique_ptr<Pull> pull_;
  const std::shared_ptr<const Layout> layout_;
  const std::vector<RowIds> rows_;
};

std::unique_ptr<OutgoingPush> ShardConnection::StartPush(const PushHeader& header,
                                                         uint64_t elements, BatchIs batch,
                                                         const RowGradients& rows) {
  return std::make_unique<Push>(*this, header, elements, batch, rows);
}

std::unique_ptr<PendingPull> ShardConnection::StartRowPull(const PullRequest& request,
                                                           const std::vector<RowIds>& rows) {
  ++pulls_;
  if (Takes(broken_pulls_)) return std::make_unique<BrokenPull>(Break());
  return std::make_unique<RowPull>(std::make_unique<Pull>(*this, request), shard_->layout(), rows);
}

std::unique_ptr<PendingPull> ShardConnection::StartPull(const PullRequest& request) {
  ++pulls_;
  if (Takes(broken_pulls_)) return std::make_unique<BrokenPull>(Break());
  if (Takes(ended_pulls_)) return std::make_unique<BrokenPull>(absl::CancelledError("ended"));
  return std::make_unique<Pull>(*this, request);
}

absl::Status ShardConnection::Report(SessionId session, const StepMeasurement& measurement) {
  return shard_->Heartbeat(session, measurement).status();
}

absl::Status ShardConnection::Leave(SessionId session, const Farewell& farewell) {
  return shard_->Leave(session, farewell).status();
}

}  // namespace sluice

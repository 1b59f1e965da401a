#include "server/shard/held_stripe.h"

#include <utility>
#include <variant>

#include "common/base/error.h"
#include "common/base/serial_executor.h"

namespace sluice {

HeldStripe::HeldStripe(StripePlace place, std::unique_ptr<Parallel> parallel, Executors executors,
                       HolderFollower::ReportListener report, StripeStorage* storage,
                       TableMemory table_memory)
    : parallel_(std::move(parallel)),
      executors_(std::move(executors)),
      follower_(place, SnapshotMemory::kPrivate, *parallel_, std::move(report), storage,
                {std::exchange(executors_.steps, std::make_unique<InlineExecutor>()),
                 storage == nullptr ? nullptr : std::make_unique<SerialExecutor>("sluice-save")},
                std::move(table_memory)) {}

HeldStripe::~HeldStripe() { Drain(); }

void HeldStripe::Drain() {
  executors_.Drain();
  follower_.Drain();
}

void HeldStripe::Listen(SessionListener listener) { listener_ = std::move(listener); }

void HeldStripe::Execute(const HolderCommand& command) {
  if (std::holds_alternative<LoadCheckpoint>(command)) {
    // Nobody has joined yet, so these are calls of sessions of an earlier incarnation.
    EndUnknown();
    EndUnknown();
  }
  if (const auto* const open = std::get_if<OpenSession>(&command)) {
    {
      absl::MutexLock lock(&mu_);
      open_.insert(open->session);
      pushes_.Open(open->session);
      pulls_.Open(open->session);
    }
    listener_.open(open->session, open->role);
  }
  follower_.Execute(command);
  if (const auto* const end = std::get_if<EndSession>(&command)) {
    {
      absl::MutexLock lock(&mu_);
      open_.erase(end->session);
    }
    listener_.end(end->session);
  }
}

StripeFigures HeldStripe::Describe() const {
  StripeFigures figures;
  const std::shared_ptr<const Snapshot> latest = follower_.latest();
  if (latest != nullptr) figures.step = latest->step;
  const std::shared_ptr<const RowTables> tables = follower_.tables();
  if (tables != nullptr) figures.tables = tables->Describe();
  figures.wire_bytes_received = wire_bytes_.received();
  figures.wire_bytes_sent = wire_bytes_.sent();
  for (const SessionId session : active_pulls_.Sessions()) {
    if (figures.pulling.size() < StripeFigures::kMostPulling) figures.pulling.push_back(session);
  }
  return figures;
}

void HeldStripe::EndUnknown() {
  std::vector<std::pair<PushId, EndCall>> pushes;
  std::vector<std::pair<PullId, EndCall>> pulls;
  {
    absl::MutexLock lock(&mu_);
    for (const PushId id : pushes_.Tick()) pushes.emplace_back(id, push_ends_[id]);
    for (const PullId id : pulls_.Tick()) pulls.emplace_back(id, pull_ends_[id]);
  }
  const absl::Status why = EarlyCalls<PushId, PushName>::Unknown({});
  for (const auto& [id, end] : pushes) {
    if (CancelPush(id)) end(why);
  }
  for (const auto& [id, end] : pulls) {
    if (CancelPull(id)) end(why);
  }
}

// ---- Offers of parameters, which are pushes of the sequence 0 here ----

absl::StatusOr<absl::optional<InitializeOutcome>> HeldStripe::JudgeOffer(SessionId /*session*/,
                                                                         uint32_t /*attempt*/) {
  return absl::optional<InitializeOutcome>();
}

PushId HeldStripe::BeginInitialize(SessionId session, uint32_t attempt,
                                   InitializeStartCallback start, std::function<void()> cancel) {
  PushHeader header;
  header.session = session;
  header.attempt = attempt;
  const auto begin = [start = std::move(start)](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
    if (!push.ok()) return start(push.status());
    start(InitializeStart{*std::move(push), {}});
  };
  return Await(header, begin, std::move(cancel));
}

PushId HeldStripe::FinishInitialize(std::unique_ptr<PendingPush> parameters,
                                    InitializeCallback done) {
  const absl::Status taken = End(std::move(parameters), absl::OkStatus());
  if (taken.ok()) {
    done(InitializeOutcome());
  } else {
    done(taken);
  }
  return PushId();
}

void HeldStripe::AbandonInitialize(std::unique_ptr<PendingPush> parameters) {
  AbandonPush(std::move(parameters), Abandoned::kAborted);
}

// ---- Pushes ----

PushId HeldStripe::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                             std::function<void()> cancel) {
  if (!header.ok()) {
    start(header.status());
    return PushId();
  }
  const auto begin = [start = std::move(start)](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
    if (!push.ok()) return start(push.status());
    start(PushStart{*std::move(push), {}});
  };
  // A header may wait long, and the rest of it is for the first server.
  PushHeader name = *header;
  name.attachments = nullptr;
  name.encodings.reset();
  return Await(name, begin, std::move(cancel));
}

PushId HeldStripe::Await(const PushHeader& header, HolderFollower::StreamCallback start,
                         std::function<void()> cancel) {
  const PushName name = {header.session, header.sequence, header.attempt};
  absl::StatusOr<PushId> id;
  {
    absl::MutexLock lock(&mu_);
    id = pushes_.Add(name, open_.count(name.session) > 0);
    if (id.ok()) push_ends_[*id] = [start](const absl::Status& why) { start(why); };
  }
  if (!id.ok()) {
    start(id.status());
    return PushId();
  }
  const auto begin = [this, id = *id, start = std::move(start)](auto push) {
    RemovePush(id);
    start(std::move(push));
  };
  follower_.BeginPush(header, header.attempt, begin, std::move(cancel));
  return *id;
}

bool HeldStripe::RemovePush(PushId id) {
  EndCall end;  // freed without the mutex
  absl::MutexLock lock(&mu_);
  const auto found = push_ends_.find(id);
  if (found != push_ends_.end()) end = std::move(found->second);
  push_ends_.erase(id);
  return pushes_.Remove(id).has_value();
}

bool HeldStripe::CancelPush(PushId id) {
  absl::optional<PushName> name;
  EndCall end;  // freed without the mutex
  {
    absl::MutexLock lock(&mu_);
    name = pushes_.Remove(id);
    if (name.has_value()) end = std::move(push_ends_[id]);
    push_ends_.erase(id);
  }
  return name.has_value() && follower_.CancelPush(*name);
}

absl::Status HeldStripe::End(std::unique_ptr<PendingPush> push, const absl::Status& fault) {
  return follower_.EndPush(std::move(push), fault);
}

PushId HeldStripe::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  PushOutcome outcome;
  outcome.disposition = Disposition::kPartTaken;
  outcome.step = push->header().step;
  outcome.incarnation = push->header().incarnation;
  const bool large = push->layout()->size() > kPartElements;
  const auto ends = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  const auto end = [this, ends, outcome, done = std::move(done)] {
    const absl::Status taken = End(std::move(*ends), absl::OkStatus());
    done(taken.ok() ? absl::StatusOr<PushOutcome>(outcome) : taken);
  };
  large ? executors_.arrivals->Run(end) : end();  // it may measure the norm
  return PushId();
}

void HeldStripe::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                            PushCallback done) {
  done(End(std::move(push), why));
}

// If its stream broke, the worker cancels the other ones too, and the sequencer drops the push.
void HeldStripe::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  if (why == Abandoned::kAborted) return;
  const absl::Status incomplete = push->gradient().CheckComplete();
  End(std::move(push), incomplete).IgnoreError();  // its stream was told
}

// ---- Pulls ----

PullId HeldStripe::Pull(const PullRequest& request, PullCallback done) {
  const PullName name = {request.session, request.number};
  absl::StatusOr<PullId> id =
      MakeError(Reason::kBadArgument,
                "field number is 0, expected a number from 1 on, as with several "
                "servers each pull has one");
  if (name.number != 0) {
    absl::MutexLock lock(&mu_);
    id = pulls_.Add(name, open_.count(name.session) > 0);
    if (id.ok()) pull_ends_[*id] = [done](const absl::Status& why) { done(why); };
  }
  if (!id.ok()) {
    done(id.status());
    return PullId();
  }
  follower_.Pull(name, [this, id = *id, done = std::move(done)](const auto& result) {
    {
      EndCall end;  // freed without the mutex
      absl::MutexLock lock(&mu_);
      pulls_.Remove(id);
      end = std::move(pull_ends_[id]);
      pull_ends_.erase(id);
    }
    done(result);
  });
  return *id;
}

bool HeldStripe::CancelPull(PullId id) {
  absl::optional<PullName> name;
  EndCall end;  // freed without the mutex
  {
    absl::MutexLock lock(&mu_);
    name = pulls_.Remove(id);
    if (name.has_value()) end = std::move(pull_ends_[id]);
    pull_ends_.erase(id);
  }
  return name.has_value() && follower_.CancelPull(*name);
}

}  // namespace sluice

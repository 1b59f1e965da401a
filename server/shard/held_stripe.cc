#include "server/shard/held_stripe.h"

#include <utility>
#include <variant>

#include "common/base/error.h"
#include "common/base/serial_executor.h"

namespace sluice {

HeldStripe::HeldStripe(StripePlace place, SnapshotMemory memory, std::unique_ptr<Parallel> parallel,
                       Executors executors, HolderFollower::ReportListener report,
                       StripeStorage* storage, TableMemory table_memory)
    : memory_(memory),
      parallel_(std::move(parallel)),
      executors_(std::move(executors)),
      follower_(place, memory, *parallel_, std::move(report), storage,
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
  if (const auto* const open = std::get_if<OpenSession>(&command)) {
    {
      absl::MutexLock lock(&mu_);
      open_.insert(open->session);
      pushes_.Open(open->session);
      pulls_.Open(open->session);
    }
    listener_.open(*open);
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
  std::vector<PushId> pushes;
  std::vector<PullId> pulls;
  {
    absl::MutexLock lock(&mu_);
    pushes = pushes_.Tick();
    pulls = pulls_.Tick();
  }
  EndCalls(pushes, pulls);
}

void HeldStripe::EndEarlier(SessionId base) {
  std::vector<PushId> pushes;
  std::vector<PullId> pulls;
  {
    absl::MutexLock lock(&mu_);
    pushes = pushes_.Begin(base);
    pulls = pulls_.Begin(base);
  }
  EndCalls(pushes, pulls);
}

void HeldStripe::EndCalls(const std::vector<PushId>& pushes, const std::vector<PullId>& pulls) {
  for (const PushId id : pushes) {
    const auto push = TakePush(id);
    const bool waits = push.has_value() && follower_.CancelPush(push->name);
    if (waits) push->end(EarlyPushes::Unknown(push->name.session));
  }
  for (const PullId id : pulls) {
    const auto pull = TakePull(id);
    const bool waits = pull.has_value() && follower_.CancelPull(pull->name);
    if (waits) pull->end(EarlyPulls::Unknown(pull->name.session));
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
  name.running_means = nullptr;
  name.encodings.reset();
  return Await(name, begin, std::move(cancel));
}

PushId HeldStripe::Await(const PushHeader& header, HolderFollower::StreamCallback start,
                         std::function<void()> cancel) {
  const PushName name = {header.session, header.sequence, header.attempt};
  absl::StatusOr<PushId> id;
  {
    absl::MutexLock lock(&mu_);
    id = pushes_.Add({name, start}, open_.count(name.session) > 0);
  }
  if (!id.ok()) {
    start(id.status());
    return PushId();
  }
  const auto begin = [this, id = *id, start = std::move(start)](auto push) {
    TakePush(id);
    start(std::move(push));
  };
  follower_.BeginPush(header, header.attempt, begin, std::move(cancel));
  return *id;
}

absl::optional<HeldStripe::EarlyPushes::Call> HeldStripe::TakePush(PushId id) {
  absl::MutexLock lock(&mu_);
  return pushes_.Remove(id);
}

absl::optional<HeldStripe::EarlyPulls::Call> HeldStripe::TakePull(PullId id) {
  absl::MutexLock lock(&mu_);
  return pulls_.Remove(id);
}

bool HeldStripe::CancelPush(PushId id) {
  const auto push = TakePush(id);
  return push.has_value() && follower_.CancelPush(push->name);
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
    id = pulls_.Add({name, done}, open_.count(name.session) > 0);
  }
  if (!id.ok()) {
    done(id.status());
    return PullId();
  }
  follower_.Pull(name, [this, id = *id, done = std::move(done)](const auto& result) {
    TakePull(id);
    done(result);
  });
  return *id;
}

bool HeldStripe::CancelPull(PullId id) {
  const auto pull = TakePull(id);
  return pull.has_value() && follower_.CancelPull(pull->name);
}

}  // namespace sluice

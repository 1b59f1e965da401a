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
  if (const auto* const open = std::get_if<OpenSession>(&command)) listener_.open(*open);
  follower_.Execute(command);
  if (const auto* const end = std::get_if<EndSession>(&command)) listener_.end(end->session);
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
  return follower_.BeginPush(header, attempt, begin, std::move(cancel));
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
  return follower_.BeginPush(name, name.attempt, begin, std::move(cancel));
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
  if (request.number != 0) return follower_.Pull({request.session, request.number}, done);
  done(MakeError(Reason::kBadArgument,
                 "field number is 0, expected a number from 1 on, as with several "
                 "servers each pull has one"));
  return PullId();
}

}  // namespace sluice

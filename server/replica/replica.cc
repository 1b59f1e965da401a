#include "server/replica/replica.h"

#include <utility>
#include <variant>

#include "common/base/error.h"

namespace sluice {
namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

Replica::Replica(StripePlace place, SnapshotMemory memory, std::unique_ptr<Parallel> parallel,
                 Executors executors, const ReportListener& report, StripeStorage* storage,
                 TableMemory table_memory)
    : ParameterStore(memory, std::move(table_memory), std::move(parallel), std::move(executors)),
      place_(place),
      calls_(mutable_stripe(), arrived_, report),
      tasks_(mutable_stripe(), arrived_, report, storage, *this->executors().steps,
             *this->executors().files) {}

void Replica::Drain() {
  executors().Drain();
  tasks_.Drain();
}

void Replica::Listen(SessionListener listener) { listener_ = std::move(listener); }

void Replica::Execute(const ReplicaCommand& command) {
  const Overloaded execute = {
      [this](const OpenSession& one) {
        if (listener_.open) listener_.open(one);
        calls_.Do(one);
      },
      [this](const EndSession& one) {
        calls_.Do(one);
        if (listener_.end) listener_.end(one.session);
      },
      [this](const AdmitPush& one) { calls_.Do(one); },
      [this](const DropPush& one) { calls_.Do(one); },
      [this](const ReleasePull& one) { calls_.Do(one); },
      [this](const DropPull& one) { calls_.Do(one); },
      [this](const OpenModel& one) { tasks_.Do(one, place_); },
      [this](const EndJob& one) {
        absl::MutexLock lock(&mu_);
        exit_code_ = one.exit_code;
      },
      [this](const auto& one) { tasks_.Do(one); },
  };
  std::visit(execute, command);
}

absl::optional<int> Replica::exit_code() const {
  absl::MutexLock lock(&mu_);
  return exit_code_;
}

StripeFigures Replica::Describe() const {
  StripeFigures figures;
  const std::shared_ptr<const Snapshot> latest = stripe().latest();
  if (latest != nullptr) figures.step = latest->step;
  const std::shared_ptr<const RowTables> tables = stripe().tables();
  if (tables != nullptr) figures.tables = tables->Describe();
  figures.wire_bytes_received = wire_bytes().received();
  figures.wire_bytes_sent = wire_bytes().sent();
  for (const SessionId session : active_pulls().Sessions()) {
    if (figures.pulling.size() < StripeFigures::kMostPulling) figures.pulling.push_back(session);
  }
  return figures;
}

// ---- Offers of parameters, which are pushes of the sequence 0 here ----

absl::StatusOr<absl::optional<InitializeOutcome>> Replica::JudgeOffer(SessionId /*session*/,
                                                                      uint32_t /*attempt*/) {
  return absl::optional<InitializeOutcome>();
}

PushId Replica::BeginInitialize(SessionId session, uint32_t attempt, InitializeStartCallback start,
                                std::function<void()> cancel) {
  PushHeader header;
  header.session = session;
  header.attempt = attempt;
  const auto begin = [start = std::move(start)](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
    if (!push.ok()) return start(push.status());
    start(InitializeStart{*std::move(push), {}});
  };
  return calls_.BeginPush(header, begin, std::move(cancel));
}

PushId Replica::FinishInitialize(std::unique_ptr<PendingPush> parameters, InitializeCallback done) {
  const absl::Status taken = calls_.EndPush(std::move(parameters), absl::OkStatus());
  if (taken.ok()) {
    done(InitializeOutcome());
  } else {
    done(taken);
  }
  return PushId();
}

void Replica::AbandonInitialize(std::unique_ptr<PendingPush> parameters) {
  AbandonPush(std::move(parameters), Abandoned::kAborted);
}

// ---- Pushes ----

PushId Replica::BeginPush(const absl::StatusOr<PushHeader>& header, PushStartCallback start,
                          std::function<void()> cancel) {
  if (!header.ok()) {
    start(header.status());
    return PushId();
  }
  const auto begin = [start = std::move(start)](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
    if (!push.ok()) return start(push.status());
    start(PushStart{*std::move(push), {}});
  };
  // A header may wait long, and the rest of it is for the leader.
  PushHeader name = *header;
  name.attachments = nullptr;
  name.running_means = nullptr;
  name.options = nullptr;
  name.encodings.reset();
  return calls_.BeginPush(name, begin, std::move(cancel));
}

PushId Replica::FinishPush(std::unique_ptr<PendingPush> push, PushCallback done) {
  PushOutcome outcome;
  outcome.disposition = Disposition::kPartTaken;
  outcome.step = push->header().step;
  outcome.incarnation = push->header().incarnation;
  const bool large = push->layout()->size() > kPartElements;
  const auto ends = std::make_shared<std::unique_ptr<PendingPush>>(std::move(push));
  const auto end = [this, ends, outcome, done = std::move(done)] {
    const absl::Status taken = calls_.EndPush(std::move(*ends), absl::OkStatus());
    done(taken.ok() ? absl::StatusOr<PushOutcome>(outcome) : taken);
  };
  large ? executors().arrivals->Run(end) : end();  // it may measure the norm
  return PushId();
}

void Replica::RefusePush(std::unique_ptr<PendingPush> push, const absl::Status& why,
                         PushCallback done) {
  done(calls_.EndPush(std::move(push), why));
}

// If its stream broke, the worker cancels the other ones too, and the leader drops the push.
void Replica::AbandonPush(std::unique_ptr<PendingPush> push, Abandoned why) {
  if (why == Abandoned::kAborted) return;
  const absl::Status incomplete = push->gradient().CheckComplete();
  calls_.EndPush(std::move(push), incomplete).IgnoreError();  // its stream was told
}

// ---- Pulls ----

PullId Replica::Pull(const PullRequest& request, PullCallback done) {
  if (request.number != 0) return calls_.Pull({request.session, request.number}, done);
  done(MakeError(Reason::kBadArgument,
                 "field number is 0, expected a number from 1 on, as with several "
                 "servers each pull has one"));
  return PullId();
}

void Replica::CopyStripe(SessionId session, StripeCopyCallback done) {
  const absl::Status open = calls_.CheckOpen(session);
  open.ok() ? tasks_.CopyStripe(std::move(done)) : done(open);
}

}  // namespace sluice

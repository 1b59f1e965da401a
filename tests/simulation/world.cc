#include "tests/simulation/world.h"

#include <algorithm>

#include "common/base/error.h"
#include "tests/testing/shard/finish_offer.h"

namespace sluice {
namespace {

PushVerdict VerdictOf(const absl::StatusOr<PushOutcome>& outcome) {
  if (!outcome.ok()) return PushVerdict::Error(ReasonOf(outcome.status()));
  return PushVerdict::Answer(*outcome);
}

PushVerdict VerdictOf(const absl::StatusOr<PushStart>& start) {
  if (!start.ok()) return PushVerdict::Error(ReasonOf(start.status()));
  return start->push != nullptr ? PushVerdict::GoesOn() : PushVerdict::Answer(start->answer);
}

std::string InWords(const JobEvent& event) {
  static constexpr const char* kKinds[] = {"finished", "draining", "evicted", "policy", "deserted"};
  std::string words = kKinds[static_cast<int>(event.kind)];
  if (event.kind == JobEvent::Kind::kPolicyChanged) {
    absl::StrAppend(&words, " ", ConsistencyModeName(event.consistency.mode));
  }
  return absl::StrCat(words, " ", event.step.value());
}

std::string InWords(const PushHeader& header) {
  return absl::StrCat("session ", header.session.value(), " sequence ", header.sequence.value(),
                      " of step ", header.step.value(), " in incarnation ",
                      header.incarnation.value());
}

}  // namespace

World::World(const Scenario& scenario, std::vector<std::string>* log)
    : scenario_(scenario),
      log_(log),
      shard_(MakeShard()),
      oracle_(std::make_unique<Oracle>(scenario, clock_.Now())) {}

std::unique_ptr<Shard> World::MakeShard() {
  return std::make_unique<Shard>(scenario_.options, clock_, [this](const JobEvent& event) {
    owner_heard_.push_back(InWords(event));
  });
}

void World::Fail(const std::string& what) {
  if (ok()) violation_ = absl::StrCat("event ", event_, ": ", call_, "\n    ", what);
}

void World::ExpectReason(const absl::Status& found, Reason expected) {
  if (found.ok() == (expected == Reason::kNone) && ReasonOf(found) == expected) return;
  Fail(absl::StrCat("found ", found.ToString(), ", expected ", ReasonName(expected)));
}

// ---- Membership ----

absl::optional<Welcome> World::Join(const JoinRequest& request) {
  Begin([&] {
    return absl::StrCat(request.role == SessionRole::kObserver ? "observer " : "worker ",
                        request.worker, " joins as process ", request.process_nonce.value());
  });
  Reason reason = Reason::kNone;
  const Welcome expected = oracle_->Join(request, &reason);
  const auto session = std::make_shared<uint64_t>(0);
  const absl::StatusOr<Welcome> welcome =
      shard_->Join(request, [this, session](const JobEvent& event) {
        if (event.kind == JobEvent::Kind::kEvicted) dismissed_.push_back(*session);
      });
  ExpectReason(welcome.status(), reason);
  if (welcome.ok() && ok()) {
    *session = welcome->session.value();
    Note([&] {
      return absl::StrCat("session ", *session, ", takes part from step ", welcome->step.value(),
                          welcome->resumed ? ", resumed" : "");
    });
    Expect("session", *session, expected.session.value());
    const uint64_t from = oracle_->Concede(welcome->step.value());
    Expect("first step of the worker (rule 7)", welcome->step.value(), from);
    Expect("resumed", welcome->resumed, expected.resumed);
    Expect("last sequence", welcome->last_sequence.value(), expected.last_sequence.value());
    Expect("initialized", welcome->initialized, expected.initialized);
    Expect("index", welcome->index, expected.index);
    Expect("pushes before", welcome->pushes_before, expected.pushes_before);
  }
  if (welcome.ok()) {
    std::replace(dismissed_.begin(), dismissed_.end(), uint64_t{0}, *session);
    process_of_[welcome->session.value()] = oracle_->workers().Named(request.worker)->process;
  }
  End();
  return welcome.ok() ? absl::optional<Welcome>(*welcome) : absl::nullopt;
}

void World::Lose(SessionId session) {
  Begin([&] { return absl::StrCat("the connection of session ", session.value(), " breaks"); });
  oracle_->Lose(session);
  shard_->ConnectionLost(session);
  End();
}

void World::Leave(SessionId session) {
  Begin([&] { return absl::StrCat("session ", session.value(), " leaves"); });
  const Reason expected = oracle_->Leave(session);
  ExpectReason(shard_->Leave(session, {}).status(), expected);
  End();
}

void World::Heartbeat(SessionId session) {
  Begin([&] { return absl::StrCat("session ", session.value(), " sends a heartbeat"); });
  const Reason expected = oracle_->Heartbeat(session);
  ExpectReason(shard_->Heartbeat(session).status(), expected);
  End();
}

void World::Pass(absl::Duration duration, const std::vector<SessionId>& heartbeats) {
  const absl::Duration tick = scenario_.options.tick;
  for (; ok() && duration > tick; duration -= tick) PassTick(tick, heartbeats);
  if (ok()) PassTick(duration, heartbeats);
}

void World::PassTick(absl::Duration duration, const std::vector<SessionId>& heartbeats) {
  clock_.Advance(duration);
  Begin([&] {
    return absl::StrCat(absl::FormatDuration(duration), " pass, ", heartbeats.size(),
                        " send heartbeats");
  });
  for (const SessionId session : heartbeats) {
    const Reason expected = oracle_->Heartbeat(session);
    ExpectReason(shard_->Heartbeat(session).status(), expected);
  }
  oracle_->Tick();
  shard_->Tick();
  End();
}

void World::Initialize(SessionId session, const Values& parameters) {
  Begin([&] { return absl::StrCat("session ", session.value(), " offers parameters"); });
  const ModelWorker* const worker = oracle_->workers().Of(session.value());
  Reason expected = Reason::kNone;
  if (worker == nullptr) expected = Reason::kUnknownSession;
  if (worker != nullptr && worker->observer) expected = Reason::kNotAWorker;
  if (oracle_->draining()) expected = Reason::kDraining;
  absl::StatusOr<InitializeStart> start = shard_->BeginInitialize(session);
  ExpectReason(start.status(), expected);
  if (start.ok()) {
    Expect("a first offer", start->parameters != nullptr, !oracle_->initialized());
    if (start->parameters != nullptr && ok()) {
      oracle_->Initialize(parameters);
      start->parameters->Add(ChunkOf(0, parameters)).IgnoreError();
      ExpectReason(FinishOffer(*shard_, std::move(start->parameters)).status(), Reason::kNone);
    }
  }
  End();
}

// ---- Pushes ----

uint64_t World::BeginPush(const PushHeader& header, const Values& gradient, Reason fault,
                          absl::optional<uint64_t> original) {
  const uint64_t number = pushes_.size();
  Begin([&] {
    return absl::StrCat("push ", number, " begins: ", InWords(header),
                        original.has_value() ? absl::StrCat(", repeats push ", *original) : "",
                        fault == Reason::kNone ? "" : ", but its header is malformed");
  });
  pushes_.push_back(std::make_unique<SimulatedPush>());
  SimulatedPush& push = *pushes_.back();
  push.header = header;
  push.gradient = gradient;
  push.original = original.has_value() ? pushes_.at(*original)->original : number;
  const PushVerdict verdict = oracle_->BeginPush(number, header, gradient, fault);
  if (!verdict.goes_on()) due_.emplace(number, verdict);
  absl::StatusOr<PushHeader> from_wire = header;
  if (fault != Reason::kNone) from_wire = MakeError(fault, "malformed");
  push.id = shard_->BeginPush(
      from_wire,
      [this, number](absl::StatusOr<PushStart> start) { Hear(std::move(start), number); },
      [this, number] {
        heard_.push_back({Heard::kCancel, number, {}});
      });
  End();
  return number;
}

void World::Hear(absl::StatusOr<PushStart> start, uint64_t number) {
  heard_.push_back({Heard::kStart, number, VerdictOf(start)});
  if (!start.ok() || start->push == nullptr) return;
  pushes_.at(number)->pending = std::move(start->push);
  arriving_.insert(number);
}

std::unique_ptr<PendingPush> World::TakePending(uint64_t number) {
  arriving_.erase(number);
  return std::move(pushes_.at(number)->pending);
}

void World::CancelPush(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] { return absl::StrCat("push ", number, " is cancelled"); });
  const bool expected = oracle_->CancelPush(number);
  const bool cancelled = shard_->CancelPush(push.id);
  Expect("a push that waited was cancelled", cancelled, expected);
  push.cancelled = push.cancelled || cancelled;
  End();
}

void World::AddChunk(uint64_t number, uint64_t offset, const Values& elements) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] {
    return absl::StrCat("push ", number, " brings ", elements.size(), " elements from ", offset);
  });
  const absl::Status added = push.pending->Add(ChunkOf(offset, elements));
  push.arrived += elements.size();
  if (added.ok()) oracle_->NoteChunk(number);
  if (!added.ok()) {
    const Reason fault = ReasonOf(added);
    push.whole = true;
    due_.emplace(number, oracle_->FinishPush(number, fault));
    shard_->RefusePush(TakePending(number), added,
                       [this, number](const absl::StatusOr<PushOutcome>& outcome) {
                         heard_.push_back({Heard::kAnswer, number, VerdictOf(outcome)});
                       });
  }
  End();
}

void World::FinishPush(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] { return absl::StrCat("push ", number, " is finished"); });
  const bool complete = push.arrived == push.gradient.size();
  push.whole = true;
  due_.emplace(number, oracle_->FinishPush(number, complete ? Reason::kNone : Reason::kBadChunk));
  shard_->FinishPush(TakePending(number),
                     [this, number](const absl::StatusOr<PushOutcome>& outcome) {
                       heard_.push_back({Heard::kAnswer, number, VerdictOf(outcome)});
                     });
  End();
}

void World::AbandonPush(uint64_t number, Abandoned why) {
  const bool aborted = why == Abandoned::kAborted;
  Begin([&] {
    return absl::StrCat("push ", number, aborted ? " breaks off" : " ends before it is whole");
  });
  oracle_->AbandonPush(number, aborted ? Fate::kAborted : Fate::kRejected);
  shard_->AbandonPush(TakePending(number), why);
  End();
}

// ---- Pulls ----

uint64_t World::Pull(const PullRequest& request) {
  const uint64_t number = pulls_.size();
  Begin([&] {
    return absl::StrCat(
        "pull ", number, " of session ", request.session.value(), ", min_step ",
        request.min_step.value(),
        request.after.has_value() ? absl::StrCat(", after push ", request.after->value()) : "");
  });
  pulls_.push_back(std::make_unique<SimulatedPull>());
  SimulatedPull& pull = *pulls_.back();
  oracle_->Pull(number, request);
  pull.request = request;
  pull.id = shard_->Pull(request, [this, number](absl::StatusOr<PullResult> result) {
    SimulatedPull& answered = *pulls_.at(number);
    ++answered.answers;
    answered.result = std::move(result);
    heard_.push_back({Heard::kPull, number, {}});
  });
  Expect("a pull's id, if it was answered at once", pull.id == PullId(), pull.answers > 0);
  End();
  return number;
}

void World::CancelPull(uint64_t number) {
  SimulatedPull& pull = *pulls_.at(number);
  Begin([&] { return absl::StrCat("pull ", number, " is cancelled"); });
  const bool expected = oracle_->CancelPull(number);
  const bool cancelled = shard_->CancelPull(pull.id);
  Expect("cancelled (rule 6)", cancelled, expected);
  pull.cancelled = pull.cancelled || cancelled;
  End();
}

}  // namespace sluice

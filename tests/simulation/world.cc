#include "tests/simulation/world.h"

#include <algorithm>

#include "common/base/error.h"

namespace sluice {
namespace {

std::string InWords(const JobEvent& event) {
  static constexpr const char* kKinds[] = {"finished", "draining", "evicted", "policy", "deserted"};
  std::string words = kKinds[static_cast<int>(event.kind)];
  if (event.kind == JobEvent::Kind::kPolicyChanged) {
    absl::StrAppend(&words, " ", ConsistencyModeName(event.consistency.mode));
  }
  return absl::StrCat(words, " ", event.step.value());
}

}  // namespace

World::World(const Scenario& scenario, std::vector<std::string>* log)
    : scenario_(scenario),
      twins_(scenario.layout, scenario.servers, scenario.rows_on_disk),
      log_(log),
      disks_(scenario),
      servers_(MakeServers()),
      oracle_(std::make_unique<Oracle>(scenario, clock_.Now())) {
  if (scenario_.journal) StartServing(Step());
}

std::unique_ptr<Servers> World::MakeServers() {
  const auto hear = [this](const JobEvent& event) { owner_heard_.push_back(InWords(event)); };
  return std::make_unique<Servers>(scenario_, clock_, hear, disks_, log_);
}

void World::Fail(const std::string& what) {
  if (ok()) violation_ = absl::StrCat("event ", event_, ": ", call_, "\n    ", what);
}

void World::ExpectReason(const absl::Status& found, Reason expected) {
  if (interrupted()) return;
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
      shard().Join(request, [this, session](const JobEvent& event) {
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
    Expect("lost steps", welcome->lost_steps, lost_steps_);
  }
  const uint64_t returns = returns_;
  if (welcome.ok() && ok()) {
    latest_join_ = request;
    std::replace(dismissed_.begin(), dismissed_.end(), uint64_t{0}, *session);
    process_of_[welcome->session.value()] = oracle_->workers().Named(request.worker)->process;
  }
  End();
  if (returns_ != returns) return absl::nullopt;
  return welcome.ok() ? absl::optional<Welcome>(*welcome) : absl::nullopt;
}

void World::Lose(SessionId session) {
  Begin([&] { return absl::StrCat("the connection of session ", session.value(), " breaks"); });
  oracle_->Lose(session);
  shard().ConnectionLost(session);
  End();
}

void World::Leave(SessionId session, bool fails) {
  Begin([&] { return absl::StrCat("session ", session.value(), fails ? " fails" : " leaves"); });
  const Reason expected = oracle_->Leave(session, fails);
  ExpectReason(shard().Leave(session, {{}, fails ? "a reason" : ""}).status(), expected);
  End();
}

void World::Heartbeat(SessionId session) {
  Begin([&] { return absl::StrCat("session ", session.value(), " sends a heartbeat"); });
  const Reason expected = oracle_->Heartbeat(session);
  ExpectReason(shard().Heartbeat(session).status(), expected);
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
    ExpectReason(shard().Heartbeat(session).status(), expected);
  }
  oracle_->Tick();
  shard().Tick();
  End();
}

}  // namespace sluice

// The part of World that plays pulls.

#include <utility>

#include "common/base/error.h"
#include "tests/simulation/world.h"

namespace sluice {

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
  pull.request.number = ++latest_pulls_[request.session.value()];
  pull.parts.resize(servers_->count());
  servers_->Later([this, number] { PullFromShard(number); });
  for (uint32_t server = 1; server < servers_->count(); ++server) {
    pulled_in_parts_.insert(number);
    if (servers_->Percent(80))
      servers_->Later([this, number, server] { PullPartOf(number, server); });
  }
  End();
  return number;
}

void World::PullFromShard(uint64_t number) {
  SimulatedPull& pull = *pulls_.at(number);
  pull.parts[0].state = CallState::kWaits;
  pull.id = shard().store().Pull(pull.request, [this, number](absl::StatusOr<PullResult> result) {
    SimulatedPull& answered = *pulls_.at(number);
    ++answered.answers;
    answered.result = std::move(result);
    Hear(Heard::kPull, number, {});
  });
  Expect("a pull's id, if it was answered at once", pull.id == PullId(), pull.answers > 0);
}

void World::PullPartOf(uint64_t number, uint32_t server) {
  SimulatedPull& pull = *pulls_.at(number);
  if (pull.parts[server].state != CallState::kNotSent) return;
  pull.parts[server].state = CallState::kWaits;
  Note([&] { return absl::StrCat("pull ", number, " comes to server ", server); });
  const PullName name = {pull.request.session, pull.request.number};
  const PullId waits =
      servers_->replica(server).calls().Pull(name, [this, number, server](const auto& result) {
        PullPart& part = pulls_.at(number)->parts[server];
        if (part.state != CallState::kWaits) {
          return Fail(absl::StrCat("pull ", number, " was answered twice by server ", server));
        }
        part.state = CallState::kEnded;
        part.result = result;
      });
  pull.parts[server].waits = waits;
}

void World::CancelPull(uint64_t number) {
  SimulatedPull& pull = *pulls_.at(number);
  Begin([&] { return absl::StrCat("pull ", number, " is cancelled"); });
  const bool expected = oracle_->CancelPull(number);
  const bool cancelled = shard().store().CancelPull(pull.id);
  Expect("cancelled (rule 6)", cancelled, expected);
  pull.cancelled = pull.cancelled || cancelled;
  End();
}

// ---- Checks of the parts, when nothing is under way ----

// Returns whether the part may still change.
bool World::CheckPullPart(uint64_t number, uint32_t server) {
  SimulatedPull& pull = *pulls_.at(number);
  PullPart& part = pull.parts[server];
  const SessionId session = pull.request.session;
  const bool newest = pull.request.number == latest_pulls_.at(session.value());
  const bool waits = pull.answers == 0 && !pull.cancelled && !pull.past;
  switch (part.state) {
    case CallState::kNotSent:
      return true;
    case CallState::kWaits:
      if (waits && newest) return true;
      part.state = CallState::kEnded;
      part.judged = true;
      if (HasJoined(session)) {
        Fail(absl::StrCat("pull ", number, " waits at server ", server, " without reason"));
      } else {  // of such a session the other servers never hear
        Expect("a pull that waited was cancelled", servers_->replica(server).CancelPull(part.waits),
               true);
      }
      return false;
    default:
      if (!std::exchange(part.judged, true)) JudgePullPart(number, server);
      return false;
  }
}

void World::JudgePullPart(uint64_t number, uint32_t server) {
  const SimulatedPull& pull = *pulls_.at(number);
  const absl::StatusOr<PullResult>& part = pull.parts[server].result;
  const bool newest = pull.request.number == latest_pulls_.at(pull.request.session.value());
  const bool answered = pull.answers > 0 && pull.result.ok() && !pull.past;
  if (part.ok() && answered) return CheckPulledStripe(number, *part, server);
  const bool dropped = !newest || !IsOpen(pull.request.session) || pull.cancelled;
  const bool refused = pull.answers > 0 && !pull.result.ok();
  if (part.ok() || !(dropped || refused)) {
    Fail(absl::StrCat(
        "consistent pull (rule 6): pull ", number, " is told by server ", server, ": ",
        part.ok() ? "here it is" : part.status().ToString(),
        ", but by the shard: ", pull.answers == 0 ? "nothing" : pull.result.status().ToString()));
  }
}

void World::CheckPulledStripe(uint64_t number, const PullResult& found, uint32_t server) {
  const PullHeader& header = pulls_.at(number)->result->header;
  Expect("step of a pulled stripe", found.header.step.value(), header.step.value());
  Expect("not modified, at another server", found.header.not_modified, header.not_modified);
  Expect("parameters that another server sent", found.snapshot != nullptr, !header.not_modified);
  if (found.snapshot == nullptr || !ok()) return;
  const Values values = ValuesOf(found.snapshot->values.span());
  const Values& whole = oracle_->published().at(header.step.value());
  if (found.snapshot->step != header.step || values != servers_->PartOf(whole, 0, server)) {
    Fail(absl::StrCat("consistent pull (rule 6): pull ", number, " of step ", header.step.value(),
                      " got from server ", server, " the stripe of step ",
                      found.snapshot->step.value(), ", or other values"));
  }
  if (number % kHeldEvery == 0) held_.emplace_back(found.snapshot, values);
}

}  // namespace sluice

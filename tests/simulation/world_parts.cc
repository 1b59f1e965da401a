// The part of World that plays the parts of pushes on other servers than the shard's.

#include "tests/simulation/world.h"

namespace sluice {

// ---- What workers send ----

// The parts come in any order, and some in later events.
void World::BeginElsewhere(uint64_t number) {
  if (servers_->count() == 1) return;
  in_parts_.insert(number);
  for (uint32_t server = 1; server < servers_->count(); ++server) {
    if (servers_->Percent(80))
      servers_->Later([this, number, server] { BeginPart(number, server); });
  }
}

void World::BeginPart(uint64_t number, uint32_t server) {
  SimulatedPush& push = *pushes_.at(number);
  if (push.parts[server].state != CallState::kNotSent) return;
  push.parts[server].state = CallState::kWaits;
  Note([&] { return absl::StrCat("push ", number, " comes to server ", server); });
  const auto start = [this, number, server](absl::StatusOr<std::unique_ptr<PendingPush>> part) {
    HearPart(number, server, std::move(part));
  };
  const PushId waits = servers_->replica(server).calls().BeginPush(push.header, start);
  push.parts[server].waits = waits;
}

void World::HearPart(uint64_t number, uint32_t server,
                     absl::StatusOr<std::unique_ptr<PendingPush>> told) {
  const SimulatedPush& push = *pushes_.at(number);
  PushPart& part = pushes_.at(number)->parts[server];
  Note([&] {
    return absl::StrCat("push ", number, " at server ", server,
                        " is told: ", told.ok() ? "may continue" : told.status().ToString());
  });
  if (part.state != CallState::kWaits) {
    return Fail(absl::StrCat("push ", number, " was told twice at the door of server ", server));
  }
  part = {told.ok() ? CallState::kArrives : CallState::kEnded, !told.ok(), nullptr};
  if (!told.ok()) return;
  part.pending = *std::move(told);
  if (!push.arriving && push.over != event_) {
    Fail(absl::StrCat("server ", server, " admits push ", number, ", which the shard does not"));
  }
}

// The worker ends its streams, in any order with the call to the shard.
void World::CancelParts(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  EndCall(number);
  for (uint32_t server = 1; server < servers_->count(); ++server) {
    PushPart& part = push.parts[server];
    const bool waits = part.state == CallState::kWaits;
    part.state = CallState::kEnded;
    if (!waits) continue;
    Expect("a stream that waited was cancelled", servers_->replica(server).CancelPush(part.waits),
           true);
  }
}

// What was late comes now, perhaps.
void World::SendLateParts() {
  for (const uint64_t number : in_parts_) {
    for (uint32_t server = 1; server < servers_->count(); ++server) {
      if (pushes_[number]->parts[server].state != CallState::kNotSent) continue;
      if (servers_->Percent(25)) {
        servers_->Later([this, number, server] { BeginPart(number, server); });
      }
    }
  }
  for (const uint64_t number : pulled_in_parts_) {
    for (uint32_t server = 1; server < servers_->count(); ++server) {
      if (pulls_[number]->parts[server].state != CallState::kNotSent) continue;
      if (servers_->Percent(25)) {
        servers_->Later([this, number, server] { PullPartOf(number, server); });
      }
    }
  }
}

// ---- Checks, when nothing is under way ----

void World::CheckParts() {
  for (std::set<uint64_t>* const open : {&in_parts_, &pulled_in_parts_}) {
    for (auto it = open->begin(); it != open->end() && ok();) {
      bool any = false;
      for (uint32_t server = 1; server < servers_->count() && ok(); ++server) {
        any |= open == &in_parts_ ? CheckPart(*it, server) : CheckPullPart(*it, server);
      }
      it = any ? std::next(it) : open->erase(it);
    }
  }
}

// Returns whether the part may still change.
bool World::CheckPart(uint64_t number, uint32_t server) {
  SimulatedPush& push = *pushes_.at(number);
  PushPart& part = push.parts[server];
  const bool waits = push.parts[0].state == CallState::kWaits;
  switch (part.state) {
    case CallState::kNotSent:
      return true;
    case CallState::kWaits:
      if (waits) return true;
      if (HasJoined(push.header.session)) {
        Fail(absl::StrCat("push ", number, " waits at server ", server, " without reason"));
      } else {
        CancelParts(number);  // of such a session the other servers never hear
      }
      return false;
    case CallState::kArrives:
      if (push.arriving) return true;
      // The worker may have sent all of it before it heard that it is over.
      if (servers_->Percent(50)) {
        const PartEnd end = {server, absl::OkStatus(), Reason::kNone};
        servers_->Later([this, number, end] { EndPart(number, end); });
      } else {
        part.pending = nullptr;
      }
      part.state = CallState::kEnded;
      return false;
    case CallState::kEnded:
      break;
  }
  const bool goes_on = push.arriving && push.fault == Reason::kNone && IsOpen(push.header.session);
  const bool latest = push.header.attempt == attempts_.at(push.header.session.value());
  push.passed = push.passed || part.refused;
  if (part.refused && latest && (goes_on || (waits && IsOpen(push.header.session)))) {
    Fail(absl::StrCat("push ", number, " is told to end at server ", server,
                      ", but the shard says that it may continue"));
  }
  return false;
}

}  // namespace sluice

// The part of World that plays pushes. world_parts.cc plays their parts on other servers.

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "tests/simulation/world.h"

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

std::string InWords(const PushHeader& header) {
  return absl::StrCat("session ", header.session.value(), " sequence ", header.sequence.value(),
                      " of step ", header.step.value(), " in incarnation ",
                      header.incarnation.value());
}

std::string InWords(uint64_t servers) {
  if (servers == World::kAllServers) return "";
  std::string words = ", at those of the servers:";
  for (int server = 0; server < 5; ++server) {
    if ((servers >> server & 1) != 0) absl::StrAppend(&words, " ", server);
  }
  return words;
}

}  // namespace

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
  push.header.attempt = ++attempts_[header.session.value()];
  push.header.row_bytes = twins_.BytesOf(gradient);
  push.gradient = gradient;
  push.parts.resize(servers_->count());
  push.original = original.has_value() ? pushes_.at(*original)->original : number;
  // What waits is judged before or after the call: the answer to neither may depend on a disk.
  quiet_ = scenario_.journal && oracle_->WaitingAtDoor() > 0;
  const PushVerdict verdict = oracle_->BeginPush(number, header, gradient, fault);
  const uint64_t until = verdict.answered ? oracle_->HeldUntil(header) : 0;
  if (!verdict.goes_on()) due_.emplace(number, DueAnswer{verdict, until});
  absl::StatusOr<PushHeader> from_wire = push.header;
  if (fault != Reason::kNone) from_wire = MakeError(fault, "malformed");
  servers_->Later([this, number, from_wire] { BeginAtShard(number, from_wire); });
  if (fault == Reason::kNone) BeginElsewhere(number);
  End();
  return number;
}

void World::BeginAtShard(uint64_t number, const absl::StatusOr<PushHeader>& header) {
  SimulatedPush& push = *pushes_.at(number);
  push.parts[0].state = CallState::kWaits;
  push.id = shard().store().BeginPush(
      header, [this, number](absl::StatusOr<PushStart> start) { Hear(std::move(start), number); },
      [this, number] { Hear(Heard::kCancel, number, {}); });
}

void World::Hear(absl::StatusOr<PushStart> start, uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  Hear(Heard::kStart, number, VerdictOf(start));
  if (!start.ok() || start->push == nullptr) return EndCall(number);
  push.parts[0] = {CallState::kArrives, false, std::move(start->push)};
  push.arriving = true;
  arriving_.insert(number);
}

// From now on the worker sends nothing of it.
void World::EndCall(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  push.parts[0] = {CallState::kEnded, false, nullptr};
  push.arriving = false;
  push.over = event_;
  arriving_.erase(number);
}

void World::CancelPush(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] { return absl::StrCat("push ", number, " is cancelled"); });
  const bool expected = oracle_->CancelPush(number);
  const bool cancelled = shard().store().CancelPush(push.id);
  Expect("a push that waited was cancelled", cancelled, expected);
  push.cancelled = push.cancelled || cancelled;
  if (cancelled) CancelParts(number);
  End();
}

void World::AddChunk(uint64_t number, uint64_t offset, const Values& elements) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] {
    return absl::StrCat("push ", number, " brings ", elements.size(), " elements from ", offset);
  });
  if (offset + elements.size() == push.gradient.size() - push.arrived) {
    push.arrived += elements.size();
  }
  std::vector<PartEnd> ends;
  for (uint32_t server = 0; server < servers_->count(); ++server) {
    PushPart& part = push.parts[server];
    const Values sent = servers_->PartOf(elements, offset, server);
    if (sent.empty()) continue;
    if (server > 0) BeginPart(number, server);
    if (part.state != CallState::kArrives) continue;
    absl::Status added = SendRows(number, server);
    if (added.ok()) added = part.pending->Add(ChunkOf(servers_->Before(server, offset), sent));
    if (!added.ok()) ends.push_back({server, added, ReasonOf(added)});
    // The shard renews the lease for what comes to it.
    if (added.ok() && server == 0) oracle_->NoteChunk(number);
  }
  EndParts(number, ends);
  End();
}

absl::Status World::SendRows(uint64_t number, uint32_t server) {
  SimulatedPush& push = *pushes_.at(number);
  PushPart& part = push.parts[server];
  if (std::exchange(part.has_rows, true)) return absl::OkStatus();
  const uint64_t offset = servers_->Before(server, scenario_.layout.size());
  return twins_.Send(push.gradient, server, offset, *part.pending);
}

void World::FinishPush(uint64_t number, uint64_t servers) {
  SimulatedPush& push = *pushes_.at(number);
  Begin([&] { return absl::StrCat("push ", number, " is finished", InWords(servers)); });
  const uint64_t missing = push.gradient.size() - push.arrived;
  std::vector<PartEnd> ends;
  for (uint32_t server = 0; server < servers_->count(); ++server) {
    if ((servers >> server & 1) == 0) continue;
    if (server > 0) BeginPart(number, server);
    if (push.parts[server].state != CallState::kArrives) continue;
    const bool complete = servers_->Before(server, missing) == 0;
    ends.push_back({server, absl::OkStatus(), complete ? Reason::kNone : Reason::kBadChunk});
  }
  EndParts(number, ends);
  End();
}

void World::EndParts(uint64_t number, const std::vector<PartEnd>& ends) {
  SimulatedPush& push = *pushes_.at(number);
  // The other servers have dropped what they had of an ended session.
  const bool open = IsOpen(push.header.session);
  if (!open) push.fault = Reason::kNone;
  for (const PartEnd& end : ends) {
    push.parts[end.server].state = CallState::kEnded;
    const bool counts = open || end.server == 0;
    if (counts && push.fault == Reason::kNone) push.fault = end.fault;
    servers_->Later([this, number, end] { EndPart(number, end); });
  }
  const bool all = std::all_of(push.parts.begin(), push.parts.end(), [](const PushPart& part) {
    return part.state == CallState::kEnded;
  });
  if (!push.gathering()) return;
  gathering_.insert(number);
  if (all || !open || push.fault != Reason::kNone) ExpectAnswer(number);
}

void World::ExpectAnswer(uint64_t number) {
  SimulatedPush& push = *pushes_.at(number);
  gathering_.erase(number);
  push.whole = true;
  const uint32_t servers = IsOpen(push.header.session) ? servers_->count() : 1;
  if (servers < servers_->count()) {
    oracle_->KeepOnly(number, servers_->StripeOfShard(push.gradient));
  }
  const PushVerdict verdict =
      oracle_->FinishPush(number, twins_.Of(push.gradient, servers), push.fault);
  due_.emplace(number, DueAnswer{verdict, verdict.answered ? oracle_->HeldUntil(push.header) : 0});
}

void World::EndPart(uint64_t number, const PartEnd& end) {
  std::unique_ptr<PendingPush> part = std::move(pushes_.at(number)->parts[end.server].pending);
  if (end.server > 0) {
    servers_->replica(end.server).calls().EndPush(std::move(part), end.refused).IgnoreError();
    return;
  }
  const auto answer = [this, number](const absl::StatusOr<PushOutcome>& outcome) {
    Hear(Heard::kAnswer, number, VerdictOf(outcome));
    EndCall(number);
  };
  if (end.refused.ok()) {
    pushes_.at(number)->gathers = shard().store().FinishPush(std::move(part), answer);
  } else {
    shard().store().RefusePush(std::move(part), end.refused, answer);
  }
}

void World::AbandonPush(uint64_t number, Abandoned why) {
  SimulatedPush& push = *pushes_.at(number);
  if (push.gathering()) why = Abandoned::kAborted;  // as the shard knows of no fault
  const bool aborted = why == Abandoned::kAborted;
  Begin([&] {
    return absl::StrCat("push ", number, aborted ? " breaks off" : " ends before it is whole");
  });
  oracle_->AbandonPush(number, aborted ? Fate::kAborted : Fate::kRejected);
  if (push.gathering()) {
    Expect("a push that was given up was gathering", shard().store().CancelGathering(push.gathers),
           true);
    gathering_.erase(number);
    EndCall(number);
  } else {
    servers_->Later([this, number, why] {
      std::unique_ptr<PendingPush> part = std::move(pushes_.at(number)->parts[0].pending);
      EndCall(number);
      shard().store().AbandonPush(std::move(part), why);
    });
  }
  End();
}

// The session of these has ended, and with it the wait for the parts of other servers.
void World::NoteEndedGathering() {
  const std::set<uint64_t> gathering = gathering_;
  for (const uint64_t number : gathering) {
    if (!IsOpen(pushes_.at(number)->header.session)) ExpectAnswer(number);
  }
}

}  // namespace sluice

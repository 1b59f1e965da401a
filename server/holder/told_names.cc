#include "server/holder/told_names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status SessionHasEnded(SessionId session) {
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(), " has ended; join again"));
}

// The worker hears from the sequencer what became of its push, so no worker waits for this.
absl::Status PushDropped() {
  return absl::CancelledError("the push was answered by the sequencer");
}

absl::Status PullDropped() {
  return absl::CancelledError(
      "the sequencer has dropped the pull, because its worker asked again "
      "or its call broke off; pull again with a higher number");
}

}  // namespace

void ToldNames::Open(SessionId session) {
  if (!ended_.Contains(session)) open_[session];
}

void ToldNames::GoOnTo(const PushName& push) {
  if (ended_.Contains(push.session)) return;
  PushName& told = open_[push.session].push;
  told = std::max(told, push);
}

void ToldNames::Drop(const PullName& pull) {
  if (ended_.Contains(pull.session)) return;
  uint64_t& dropped = open_[pull.session].pull;
  dropped = std::max(dropped, pull.number);
}

void ToldNames::End(SessionId session) {
  open_.erase(session);
  ended_.Add(session);
}

absl::Status ToldNames::WhyNever(const PushName& push) const {
  if (ended_.Contains(push.session)) return SessionHasEnded(push.session);
  return At(push.session).push < push ? absl::OkStatus() : PushDropped();
}

absl::Status ToldNames::WhyNever(const PullName& pull) const {
  if (ended_.Contains(pull.session)) return SessionHasEnded(pull.session);
  return At(pull.session).pull < pull.number ? absl::OkStatus() : PullDropped();
}

ToldNames::Told ToldNames::At(SessionId session) const {
  const auto open = open_.find(session);
  return open == open_.end() ? Told() : open->second;
}

}  // namespace sluice

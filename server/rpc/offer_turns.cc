#include "server/rpc/offer_turns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status TooManyOffers(SessionId session) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("session ", session.value(), " has ", OfferTurns::kMostOfSession,
                                " offers of initial parameters; wait for their answers"));
}

}  // namespace

absl::Status OfferLostSession(SessionId session) {
  return MakeError(
      Reason::kUnknownSession,
      absl::StrCat("session ", session.value(), " has ended; join again and repeat the offer"));
}

void OfferTurns::Begin(SessionId session) {
  absl::MutexLock lock(&mu_);
  sessions_[session];
}

void OfferTurns::End(SessionId session) {
  Ends ends;
  {
    absl::MutexLock lock(&mu_);
    const auto ended = sessions_.find(session);
    if (ended == sessions_.end()) return;
    ends = std::move(ended->second);
    sessions_.erase(ended);
  }
  for (const auto& end : ends) end.second();
}

absl::Status OfferTurns::Wait(Offer offer) {
  Turn turn = Turn::kRefused;
  {
    absl::MutexLock lock(&mu_);
    const auto session = sessions_.find(offer.session);
    if (session == sessions_.end()) return OfferLostSession(offer.session);
    turn = turns_.Add(offer.offer, {absl::StrCat(offer.session.value()), kMostOfSession}, offer.go);
    if (turn == Turn::kRefused) return TooManyOffers(offer.session);
    session->second.emplace_back(offer.offer, std::move(offer.end));
    session_of_.emplace(offer.offer, offer.session);
  }
  if (turn == Turn::kNow) offer.go();
  return absl::OkStatus();
}

bool OfferTurns::Cancel(const void* offer) {
  if (!turns_.Cancel(offer)) return false;
  Forget(offer);
  return true;
}

void OfferTurns::Leave(const void* offer) {
  Forget(offer);
  turns_.Leave(offer);
}

void OfferTurns::Forget(const void* offer) {
  std::function<void()> end;  // destroyed after the lock is released
  absl::MutexLock lock(&mu_);
  const auto known = session_of_.find(offer);
  if (known == session_of_.end()) return;
  const auto session = sessions_.find(known->second);
  session_of_.erase(known);
  if (session == sessions_.end()) return;
  Ends& ends = session->second;
  const auto it =
      std::find_if(ends.begin(), ends.end(), [offer](const auto& of) { return of.first == offer; });
  end = std::move(it->second);
  ends.erase(it);
}

}  // namespace sluice

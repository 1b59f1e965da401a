#include "server/rpc/offer_turns.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status OfferLostSession(SessionId session) {
  return MakeError(
      Reason::kUnknownSession,
      absl::StrCat("session ", session.value(), " has ended; join again and repeat the offer"));
}

void OfferTurns::Begin(SessionId session) {
  absl::MutexLock lock(&mu_);
  sessions_.insert(session);
}

void OfferTurns::End(SessionId session) {
  std::vector<std::function<void()>> ends;
  {
    absl::MutexLock lock(&mu_);
    sessions_.erase(session);
    for (const Offer& offer : offers_) {
      if (offer.session == session) ends.push_back(offer.end);
    }
  }
  for (const auto& end : ends) end();
}

absl::Status OfferTurns::CheckMayWait(SessionId session) const {
  if (sessions_.count(session) == 0) return OfferLostSession(session);
  const auto of_session = [session](const Offer& offer) { return offer.session == session; };
  const auto open = static_cast<size_t>(std::count_if(offers_.begin(), offers_.end(), of_session));
  if (open < kMostOfSession) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("session ", session.value(), " has ", open,
                                " offers of initial parameters; wait for their answers"));
}

absl::Status OfferTurns::Wait(Offer offer) {
  std::function<void()> go;
  {
    absl::MutexLock lock(&mu_);
    const absl::Status may = CheckMayWait(offer.session);
    if (!may.ok()) return may;
    if (offers_.empty()) go = offer.go;
    offers_.push_back(std::move(offer));
  }
  if (go) go();
  return absl::OkStatus();
}

OfferTurns::Offers::iterator OfferTurns::Find(const void* offer) {
  return std::find_if(offers_.begin(), offers_.end(),
                      [offer](const Offer& entry) { return entry.offer == offer; });
}

bool OfferTurns::Cancel(const void* offer) {
  Offer cancelled;  // destroyed after the lock is released
  absl::MutexLock lock(&mu_);
  const auto it = Find(offer);
  if (it == offers_.end() || it == offers_.begin()) return false;
  cancelled = std::move(*it);
  offers_.erase(it);
  return true;
}

void OfferTurns::Leave(const void* offer) {
  std::function<void()> next;
  Offer left;  // destroyed after the lock is released
  {
    absl::MutexLock lock(&mu_);
    const auto it = Find(offer);
    if (it == offers_.end()) return;
    const bool had_turn = it == offers_.begin();
    left = std::move(*it);
    offers_.erase(it);
    if (had_turn && !offers_.empty()) next = offers_.front().go;
  }
  if (next) next();
}

}  // namespace sluice

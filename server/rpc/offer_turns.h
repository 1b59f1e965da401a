// Lets one offer of initial parameters be received at a time.
//
// Each offer that is received takes memory for the whole model, and only the first complete one
// counts. So the others wait at their headers. If an offer fails, the next one has its turn; when
// one has become the parameters, the others are answered. InitializeParams and Join use the table.

#ifndef SLUICE_SERVER_RPC_OFFER_TURNS_H_
#define SLUICE_SERVER_RPC_OFFER_TURNS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// May be used by any thread. Callbacks run outside its lock.
class OfferTurns {
 public:
  // The most offers of one session: the current one, and an earlier one whose end the server has
  // not noticed yet.
  static constexpr size_t kMostOfSession = 2;

  // `offer` stands for the offer's call. `go` is called once, when its turn has come, perhaps
  // before Wait() returns. `end` may be called any time until Leave(), if the session ends.
  struct Offer {
    const void* offer = nullptr;
    SessionId session;
    std::function<void()> go;
    std::function<void()> end;
  };

  // A session has begun or ended. At its end, `end` of its offers is called.
  void Begin(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);
  void End(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits for the offer's turn. UNKNOWN_SESSION if the session has ended, BAD_ARGUMENT if it has
  // kMostOfSession offers already. After an error neither callback is called.
  absl::Status Wait(Offer offer) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the offer's wait. Returns true if it waited; then neither callback is called any more.
  bool Cancel(const void* offer) ABSL_LOCKS_EXCLUDED(mu_);

  // The offer has ended, and the next has its turn. Does nothing for an offer that is not here.
  void Leave(const void* offer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Offers = std::deque<Offer>;

  Offers::iterator Find(const void* offer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckMayWait(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::set<SessionId> sessions_ ABSL_GUARDED_BY(mu_);
  Offers offers_ ABSL_GUARDED_BY(mu_);  // the first has its turn
};

// The error of an offer whose session has ended: UNKNOWN_SESSION.
absl::Status OfferLostSession(SessionId session);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OFFER_TURNS_H_

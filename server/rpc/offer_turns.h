// Lets one offer of initial parameters, or one of constants, be received at a time.
//
// Each offer that is received takes memory for the whole model, and only the first complete one
// counts. So the others wait at their headers. If an offer fails, the next one has its turn; when
// one has become the job's, the others are answered. InitializeParams and OfferConstants have a
// table each; Join tells both of sessions.

#ifndef SLUICE_SERVER_RPC_OFFER_TURNS_H_
#define SLUICE_SERVER_RPC_OFFER_TURNS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "server/rpc/turns.h"

namespace sluice {

// May be used by any thread. Callbacks run outside its lock.
class OfferTurns {
 public:
  // The most offers of one session: the current one, and an earlier one whose end the server has
  // not noticed yet.
  static constexpr size_t kMostOfSession = 2;

  // `offer` stands for the offer's call. `go` is called once, when its turn has come, perhaps
  // before Wait() returns. `end` may be called any time until Leave(), if the session ends. Both
  // may still run while another thread calls Leave().
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

  // Ends the offer's wait. Returns true if it waited; then neither callback is called any more,
  // except an `end` that has begun.
  bool Cancel(const void* offer) ABSL_LOCKS_EXCLUDED(mu_);

  // The offer has ended, and the next has its turn. Does nothing for an offer that is not here.
  void Leave(const void* offer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The offers of a session, at most kMostOfSession.
  using Ends = std::vector<std::pair<const void*, std::function<void()>>>;

  void Forget(const void* offer) ABSL_LOCKS_EXCLUDED(mu_);

  Turns turns_{1};
  absl::Mutex mu_;  // may be held when turns_ takes its own
  std::map<SessionId, Ends> sessions_ ABSL_GUARDED_BY(mu_);  // those that are open
  std::unordered_map<const void*, SessionId> session_of_ ABSL_GUARDED_BY(mu_);
};

// The error of an offer whose session has ended: UNKNOWN_SESSION.
absl::Status OfferLostSession(SessionId session);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OFFER_TURNS_H_

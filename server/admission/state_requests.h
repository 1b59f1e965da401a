// Workers that wait for the model, in a job whose workers step themselves (MeanGradientOptions):
// who has come late, or has missed a step. Another one is asked for it when it has contributed to
// the coming step, and waits for that. In sync the step is not made meanwhile, since those who wait
// for the model take part in it. If all wait, the server may have lost steps: then one whose model
// has made more steps than the server goes on with it.

#ifndef SLUICE_SERVER_ADMISSION_STATE_REQUESTS_H_
#define SLUICE_SERVER_ADMISSION_STATE_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/membership/session_table.h"
#include "server/state/completions.h"

namespace sluice {

// The model of a step as a worker wrote it.
struct WorkerState {
  Step step;
  uint64_t optimizer_steps = 0;              // see PullHeader
  std::shared_ptr<const std::string> bytes;  // null: it is the caller's own
  uint64_t checksum = 0;                     // XXH3-64
};

// Called exactly once, outside all locks, unless the request is cancelled.
using WorkerStateCallback = std::function<void(const absl::StatusOr<WorkerState>&)>;
using StateRequestId = Number<struct StateRequestTag>;  // from 1; 0 is none
using StateOfferId = Number<struct StateOfferTag>;      // from 1; 0 is none

// Externally synchronized.
class StateRequests {
 public:
  static constexpr int kMostFailures = 8;

  // If all wait, they wait for so long for one that was evicted, and may come back.
  explicit StateRequests(absl::Duration patience) : patience_(patience) {}

  // `ahead`: the steps of the worker's own model, if they are more than the server's. An earlier
  // request of the session ends with BAD_ARGUMENT.
  StateRequestId Add(SessionId session, absl::optional<uint64_t> ahead, WorkerStateCallback done,
                     Completions* completions);
  bool Cancel(StateRequestId id);  // true: `done` will not be called

  // These sessions have changed. Notes which of them have contributed to the current step, so that
  // they have the model.
  void Note(const std::vector<SessionId>& changed, const SessionTable& sessions, Step step);
  // Called after every change. Ends requests of sessions that have ended, all of them unless
  // `serving` is OK, and all or one of them if every worker waits. Returns the session that is
  // asked now, and has not begun to offer: its pull, and its push if that is not answered, are to
  // get WantedError().
  absl::optional<SessionId> Settle(const absl::Status& serving, const SessionTable& sessions,
                                   Step step, absl::Time now, Completions* completions);
  bool Wants(SessionId session) const;  // whether Settle() would return it
  static absl::Status WantedError();    // STATE_WANTED

  // An offer of the session begins, and ends. BAD_ARGUMENT if it is not asked (any more), or makes
  // one already. If it ends without being handed on, another worker is asked first; after
  // kMostFailures in a row the requests end with NO_STATE.
  absl::StatusOr<StateOfferId> BeginOffer(SessionId session);
  void EndOffer(StateOfferId offer, Completions* completions);
  // Hands on what an offer has brought, or ends the requests with NO_STATE, and the text `failure`.
  // If its step is over, nothing happens: a worker is asked anew.
  void HandOn(StateOfferId offer, WorkerState state, Completions* completions);
  void Fail(StateOfferId offer, const std::string& failure, Completions* completions);

  // Who waits, and who offers: others wait for the server, and not for them.
  std::vector<SessionId> Served() const;

 private:
  struct Request {
    SessionId session;
    absl::optional<uint64_t> ahead;
    WorkerStateCallback done;
  };
  struct Asked {
    SessionId session;
    Step step;
    StateOfferId offer = StateOfferId();  // 0: it has not begun
  };

  bool Waits(SessionId session) const;
  void EndLostRequests(const SessionTable& sessions, Completions* completions);
  void EndIfAllWait(const SessionTable& sessions, Step step, absl::Time now,
                    Completions* completions);
  void Choose(const SessionTable& sessions, Step step);
  void End(const absl::StatusOr<WorkerState>& result, Completions* completions);

  const absl::Duration patience_;
  StateRequestId last_id_;
  StateOfferId last_offer_;
  std::map<StateRequestId, Request> waiting_;
  absl::optional<Asked> asked_;
  Step step_;                         // of `have_it_`
  std::set<SessionId> have_it_;       // have contributed to that step
  std::set<SessionId> failed_;        // have made an offer since, that was not handed on
  int failures_ = 0;                  // offers of all workers in a row
  absl::optional<absl::Time> since_;  // when all began to wait
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_STATE_REQUESTS_H_

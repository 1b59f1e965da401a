// The queue of pulls. Each pull is released as soon as its conditions hold, and then answered with
// the latest parameters.
//
// PullGate calls Serve() after every change. It knows the conditions, and passes them as a
// PullJudge. A pull that waits is judged again only when what it waits for may have come: of a
// thousand workers that wait for a step, none is looked at when another one pushes.

#ifndef SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_
#define SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "server/replica/pull_result.h"
#include "server/state/completions.h"

namespace sluice {

// Whether a pull can be answered now, and what it waits for.
enum class PullTurn {
  kNow,
  kAwaitsStep,  // parameters of a later step
  kAwaitsPush,  // its own push, which is not answered, or not in the sum
  kHeldUp,      // only the mode holds it: its worker waits for other workers
};

// The fields of the answer that are the same for all pulls that are answered together.
struct PullContext {
  Step step;                  // the latest
  uint64_t bytes = 0;         // of its parameters, as float32
  bool inconsistent = false;  // chunks may be of later steps, unless the pull asks for a whole step
  double learning_rate = 0;   // at that step
  bool last = false;          // no step will follow
};

// The facts that a PullJudge uses, beside the record of the pull's session.
struct PullConditions {
  bool serving = true;
  uint64_t ended_sessions = 0;  // how many
  Step step;
  bool initialized = false;
  bool ends = false;       // the job
  bool completes = false;  // the step
  uint64_t slowest = 0;    // in ssp, the clock that others wait for
};

// Decides about one pull. An error ends the pull with that error.
using PullJudge = std::function<absl::StatusOr<PullTurn>(const PullRequest&)>;

// Externally synchronized.
class PullQueue {
 public:
  // `incarnation` is the server's, for the answers. `release` attaches the parameters to them.
  PullQueue(Incarnation incarnation, PullRelease release)
      : incarnation_(incarnation), release_(std::move(release)) {}

  PullId Add(const PullRequest& request, PullCallback done);

  bool Waits(PullId id) const { return waiting_.count(id) > 0; }

  // Removes a pull, and returns it; nothing if it does not wait any more.
  absl::optional<PullRequest> Cancel(PullId id);

  // Say which pulls Serve() judges next, beside those that were added since it was last called:
  // those that depend on the conditions, if they have changed; those of a session; all.
  void Note(const PullConditions& now);
  void NoteSession(SessionId session);
  void NoteAll();

  // Asks `judge` about these pulls, in order of arrival. Releases those whose turn has come, ends
  // those with an error, and removes both.
  void Serve(const PullContext& context, const PullJudge& judge, absl::Time now,
             Completions* completions);

  size_t size() const { return waiting_.size(); }
  // Sets the time since which held-up pulls wait to `now`.
  void RestartHoldUp(absl::Time now);

  // Since when the first of the held-up pulls waits, if there is one.
  absl::optional<absl::Time> held_up_since() const {
    return held_up_.empty() ? absl::nullopt : absl::make_optional(*held_up_.begin());
  }
  uint64_t bytes_answered() const { return bytes_answered_; }  // of parameters and rows, as float32

 private:
  struct Waiting {
    PullRequest request;
    PullCallback done;
    absl::optional<absl::Time> held_up_since;
  };
  using Queue = std::map<PullId, Waiting>;

  PullResult Release(const PullRequest& request, const PullContext& context);

  void Await(PullTurn turn, absl::Time now, PullId id, Waiting& pull);
  void Remove(Queue::iterator pull);
  void HoldUp(Waiting& pull, absl::optional<absl::Time> since);

  const Incarnation incarnation_;
  const PullRelease release_;
  uint64_t bytes_answered_ = 0;
  PullId last_id_;
  PullConditions conditions_;
  Queue waiting_;
  std::set<std::pair<SessionId, PullId>> of_session_;
  std::set<PullId> awaiting_step_;     // or held up
  std::set<PullId> due_;               // to be judged by the next Serve()
  std::multiset<absl::Time> held_up_;  // every held_up_since
};

}  // namespace sluice

#endif  // SLUICE_SERVER_ADMISSION_PULL_QUEUE_H_

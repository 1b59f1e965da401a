// The servers of a job, for its leader: sends each command to the replicas on the other servers,
// and gathers what they report with what the leader's own server does. replica_commands.h has the
// protocol.
//
// Numbers: 0 is the leader's own server, 1 and above are the others. `replicas()` and
// GatheredReports count all of them. Commands go to the others only.
//
// A push, or an offer of parameters, is here from Admit() until Add(), TakeParameters(), Drop() or
// Cancel(). It is whole when all servers have their parts. It ends early when one has refused its
// part, and when its session ends.

#ifndef SLUICE_SERVER_SHARD_REPLICA_GROUP_H_
#define SLUICE_SERVER_SHARD_REPLICA_GROUP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/replica/gathered_reports.h"
#include "server/replica/replica_commands.h"
#include "server/replica/replica_link.h"
#include "server/shard/tensor_summaries.h"
#include "server/state/completions.h"
#include "server/state/saved_stripes.h"
#include "server/state/shard_status.h"

namespace sluice {

// The last step that all servers can repeat from their journals.
struct LeastJournaled {
  Step step;
  uint32_t server = 0;  // whose journal ends there
};

// Externally synchronized; JobState owns it. Without links, methods that send do nothing.
class ReplicaGroup {
 public:
  // Gets the report on the whole push, as GatheredReports makes it. If its session ended, or after
  // Stop(), it gets the report of server 0, in the latter case with Stop()'s error.
  using GatheredCallback = std::function<void(const HaveReport&)>;

  ReplicaGroup() : reports_(1) {}

  // Link i leads to replica i + 1. Before all other methods. The links outlive the group.
  void Lead(std::vector<ReplicaLink*> links);
  // All servers of the job, also this one.
  uint32_t replicas() const { return static_cast<uint32_t>(links_.size()) + 1; }
  void Send(const ReplicaCommand& command);

  // ---- Sessions. Calls that name a session that is not open do nothing.

  void Open(SessionId session, const JoinRequest& request);
  // Tells the replicas which sessions have ended. `ended` is how many have, in all. The pushes that
  // are whole may still count. The others end, and their callbacks are called.
  void EndSessions(uint64_t ended, absl::FunctionRef<bool(SessionId)> is_alive,
                   Completions* completions);

  // ---- Pushes, and offers of parameters, which have the sequence 0.

  // A header has come. BAD_ARGUMENT if its attempt is not higher than those before it.
  absl::Status Begin(const PushName& name);
  void Admit(const AdmitPush& admitted);
  // The push was answered without its payload: the replicas drop its streams.
  void Pass(const PushName& name);
  // Server 0 has its part, or has refused it. `whole` is called once, unless Cancel() is. It is
  // called also if the session has ended.
  void FinishOwn(const HaveReport& own, GatheredCallback whole, Completions* completions);
  void OnReport(uint32_t replica, const HaveReport& report, Completions* completions);
  // Forgets a push of which server 0 has its part, and another server does not have its own yet.
  // False if it is not such a push: then `whole` was called, or is about to be, or FinishOwn() was
  // not called.
  bool Cancel(PushId push);
  // Nothing happens if the push is not here.
  void Drop(PushId push);
  void Add(PushId push, const GradientWeight& weight, bool last);
  void TakeParameters(PushId push, Step step);

  // ---- Pulls

  // Drops the earlier pulls of the session. BAD_ARGUMENT if its number is not higher than theirs.
  absl::Status BeginPull(const PullName& pull);
  void Release(const PullName& pull, const PullHeader& header);
  void DropPull(const PullName& pull);

  // ---- Checkpoints

  // Begins to load the stripes of the other servers.
  void Load(const LoadCheckpoint& checkpoint);
  void OnReport(uint32_t replica, const LoadedReport& report);
  // UNAVAILABLE names a server that has not loaded its stripe yet.
  absl::Status CheckLoaded() const;
  bool IsLoaded() const { return loading_.empty() || stopped(); }  // also after Stop()
  // Of the others, once they have loaded.
  const LeastJournaled& least_journaled() const { return least_journaled_; }
  // Returns what the other servers save; null without links.
  std::shared_ptr<SavedStripes> TakeCheckpoint(const sluice::TakeCheckpoint& checkpoint);
  void OnReport(uint32_t replica, const SavedReport& report);
  // Whether a server still saves a checkpoint.
  bool saves() const { return !saving_.empty(); }

  // ---- Tensors

  // Asks the other servers for their parts of a tensor of step `step`, the latest. Returns the
  // number by which server 0 reports its own. `done` is called once. An error, and it is never
  // called, if too many calls wait, if a server has not loaded its stripe yet, and after Stop().
  absl::StatusOr<uint64_t> Summarize(const TensorQuery& query, const StripedTensor& tensor,
                                     Step step, SummaryCallback done);
  void OnReport(uint32_t replica, const SummaryReport& report, Completions* completions) {
    summaries_.Take(replica, report, completions);
  }

  // ---- Steps

  // Gives an order, at the time `now`.
  void Order(const StepOrder& order, absl::Time now);
  // Nothing happens if no order was given.
  void OnReport(uint32_t replica, const StripeReport& report);
  // Whether all servers have carried it out; also after Stop().
  bool MayGoOn() const { return carried_.has_value() || stopped(); }
  // Their reports, in the order of their numbers; after Stop() none.
  std::vector<StripeReport> TakeCarried();

  // Waits for no replica from now on. Ends all pushes that are not whole, and all calls that wait
  // for a tensor, with `why`, an error.
  void Stop(const absl::Status& why, Completions* completions);
  bool stopped() const { return !stopped_.ok(); }
  const absl::Status& why_stopped() const { return stopped_; }
  // Sends the last command.
  void End(int exit_code);

  void Describe(ShardStatus* status) const;

 private:
  struct Push {
    PushName name;
    HaveReport own;             // once `gathered` is there
    GatheredCallback gathered;  // null before FinishOwn()
    absl::optional<HaveReport> whole;
  };
  struct Session {
    uint32_t attempt = 0;  // the latest
    uint64_t pull = 0;     // the latest
  };
  using Pushes = std::map<PushId, Push>;

  void EndSession(SessionId session, Completions* completions);
  // Calls back if server 0 has its part or has refused it. Then forgets a push that was refused.
  void Tell(Pushes::iterator push, Completions* completions);
  Pushes::iterator EndEarly(Pushes::iterator push, const absl::Status& why,
                            Completions* completions);

  std::vector<ReplicaLink*> links_;
  GatheredReports reports_;
  std::map<SessionId, Session> sessions_;  // the open ones
  uint64_t ended_ = 0;
  Pushes pushes_;
  std::set<uint32_t> loading_;  // other servers that have not loaded their stripes
  LeastJournaled least_journaled_;
  // The checkpoints that not all other servers have reported on, in the order of their commands.
  std::deque<std::shared_ptr<SavedStripes>> saving_;
  TensorSummaries summaries_;
  absl::optional<absl::Time> ordered_;  // when the order was given that is not carried out
  absl::optional<std::vector<StripeReport>> carried_;
  absl::Status stopped_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_REPLICA_GROUP_H_

// The servers of a job, for its leader: sends each command to the replicas on the other servers,
// and gathers what they report on pushes with what the leader's own server does. replica_commands.h
// has the protocol.
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
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "server/replica/gathered_reports.h"
#include "server/replica/replica_commands.h"
#include "server/replica/replica_link.h"
#include "server/state/completions.h"

namespace sluice {

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

  // ---- The end

  // Waits for no replica from now on. Ends all pushes that are not whole with `why`, an error.
  void Stop(const absl::Status& why, Completions* completions);
  bool stopped() const { return !stopped_.ok(); }
  const absl::Status& why_stopped() const { return stopped_; }
  // Sends the last command.
  void End(int exit_code);

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
  absl::Status stopped_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_REPLICA_GROUP_H_

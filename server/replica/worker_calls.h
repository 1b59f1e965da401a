// Joins the calls of workers to the leader's log, on a server that is not the leader. A stream or a
// pull may come before or after the command that concerns it, so one waits here for the other:
//
//   a push   waits for the log: its stream has brought its header, and nothing else is read
//            waits for its stream: it is admitted
//            arrives: both are there; until EndPush()
//   a pull   waits for the log
//            is released: its snapshot waits for the call
//
// For each session it keeps the latest push and pull that the log has named. So a call for which no
// command comes any more is answered at once. How many calls wait is bounded, also of sessions that
// the log has not opened.

#ifndef SLUICE_SERVER_REPLICA_WORKER_CALLS_H_
#define SLUICE_SERVER_REPLICA_WORKER_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "server/aggregation/pending_push.h"
#include "server/replica/arrived_pushes.h"
#include "server/replica/ended_sessions.h"
#include "server/replica/pull_result.h"
#include "server/replica/replica_commands.h"
#include "server/replica/server_stripe.h"
#include "server/state/completions.h"

namespace sluice {

using ReportListener = std::function<void(const ReplicaReport&)>;

// One thread executes the log's commands, in their order. Any thread may call the other methods.
// Callbacks and `report` are called outside all locks.
class WorkerCalls {
 public:
  // The most calls of one kind of one session that wait for the log.
  static constexpr size_t kMostOfSession = 64;
  // The most calls of all sessions that are not open.
  static constexpr size_t kMostUnknown = 4096;

  // Gets the push when it is admitted, or the error if it never is.
  using StreamCallback = std::function<void(absl::StatusOr<std::unique_ptr<PendingPush>>)>;

  // Both outlive it.
  WorkerCalls(ServerStripe& stripe, ArrivedPushes& arrived, ReportListener report)
      : stripe_(stripe), arrived_(arrived), report_(std::move(report)) {}

  // ---- Calls of workers

  // A stream has brought its header, of a push or of an offer of parameters. An attempt has one
  // stream. `start` is called once, when the push is admitted or never will be:
  // - CANCELLED if the leader drops the push, or goes on to a later push of the session
  // - UNKNOWN_SESSION if the session ends, is of an earlier incarnation, or is not open at the
  //   second EndUnknown() either; at once if it is not open and kMostUnknown such calls wait
  //   already
  // - BAD_ARGUMENT if a call with this name waits already, or kMostOfSession of the session do
  //
  // If the push is dropped or its session ends while it arrives, `cancel` is called, unless it is
  // null. Returns an id for CancelPush(). Returns 0 if the stream did not wait: `start` was then
  // called before this returned.
  PushId BeginPush(const PushHeader& header, StreamCallback start,
                   std::function<void()> cancel = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  // The call of a stream that waits has ended. Returns whether it waited: then `start` is never
  // called. If not, `start` has been called, or another thread is about to call it.
  bool CancelPush(PushId id) ABSL_LOCKS_EXCLUDED(mu_);
  // Its payload is here, or `fault` is the error that was found in it. Reports on it, and returns
  // the answer to the stream: OK if the part is taken, or the error in it. CANCELLED or
  // UNKNOWN_SESSION, as above, if it was dropped meanwhile: then nothing is reported.
  absl::Status EndPush(std::unique_ptr<PendingPush> push, const absl::Status& fault)
      ABSL_LOCKS_EXCLUDED(mu_);

  // `done` is called once, when the pull is released. Errors and the id are those of BeginPush().
  PullId Pull(const PullName& name, PullCallback done) ABSL_LOCKS_EXCLUDED(mu_);
  bool CancelPull(PullId id) ABSL_LOCKS_EXCLUDED(mu_);

  // UNKNOWN_SESSION unless the log has opened the session, and not ended it.
  absl::Status CheckOpen(SessionId session) const ABSL_LOCKS_EXCLUDED(mu_);

  // ---- The log

  void Do(const OpenSession& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const AdmitPush& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const DropPush& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const ReleasePull& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const DropPull& command) ABSL_LOCKS_EXCLUDED(mu_);
  void Do(const EndSession& command) ABSL_LOCKS_EXCLUDED(mu_);

  // The sessions of the leader's incarnation have the numbers after `base`. Ends the calls of all
  // others, also of those that come later: their workers may not know yet that the leader went
  // back. Call it when the leader has taken this server.
  void EndEarlier(SessionId base) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the calls whose sessions are not open, if they waited at an earlier EndUnknown() already.
  // Call it every few seconds while the log comes in.
  void EndUnknown() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum class PushPhase { kAwaitsLog, kAwaitsStream, kArrives };
  struct Push {
    PushPhase phase = PushPhase::kAwaitsLog;
    PushHeader header;             // once the stream is there
    StreamCallback start;          // kAwaitsLog
    std::function<void()> cancel;  // once the stream is there; may be null
    AdmitPush admitted;            // not kAwaitsLog
    PushId id;                     // kAwaitsLog: for CancelPush()
    bool old = false;              // kAwaitsLog: EndUnknown() has seen it
  };
  struct WaitingPull {
    PullCallback done;  // null: it is released
    PullResult result;  // released
    PullId id;          // not released: for CancelPull()
    bool old = false;   // not released: EndUnknown() has seen it
  };
  struct Session {
    bool open = false;
    PushName told;         // the latest that the log named: it admits no such or lower one any more
    uint64_t dropped = 0;  // the log releases no pull with this or a lower number any more
    std::map<PushName, Push> pushes;
    std::map<uint64_t, WaitingPull> pulls;

    // How many calls wait for the log.
    size_t WaitingPushes() const;
    size_t WaitingPulls() const;
    // An error if the log has told of this or a later name, and so never comes to it.
    absl::Status WhyNever(const PushName& push) const;
    absl::Status WhyNever(const PullName& pull) const;
  };
  using Sessions = std::map<SessionId, Session>;

  // Why the log never comes to a push or pull: its session is over, or see Session. OK if it may.
  template <typename Name>
  absl::Status WhyNever(const Name& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // BAD_ARGUMENT or UNKNOWN_SESSION if no call of the session may begin to wait. `waiting`: how
  // many of this kind do. `in_use`: one has its name.
  absl::Status CheckMayWait(SessionId session, size_t waiting, bool in_use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null unless that push arrives.
  Push* FindArriving(const PushName& name, PushId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<PendingPush> Arrive(Push& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // End the calls of a session that wait for the log, up to that name, for which `ends` is true.
  using Ends = absl::FunctionRef<bool(bool& old)>;
  void EndPushes(Session& session, const PushName& last, const absl::Status& why, Ends ends,
                 Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndPulls(Session& session, const PullName& last, const absl::Status& why, Ends ends,
                Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndSessions(absl::FunctionRef<bool(const Sessions::value_type&)> which, Ends ends,
                   Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GoOnTo(const PushName& name, Completions* completions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoLongerWaits(const Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIfEmpty(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  ServerStripe& stripe_;
  ArrivedPushes& arrived_;
  const ReportListener report_;
  mutable absl::Mutex mu_;
  Sessions sessions_ ABSL_GUARDED_BY(mu_);  // the open ones, and those of calls that wait
  EndedSessions ended_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  // The calls that wait for the log.
  std::map<PushId, PushName> waiting_pushes_ ABSL_GUARDED_BY(mu_);
  std::map<PullId, PullName> waiting_pulls_ ABSL_GUARDED_BY(mu_);
  size_t unknown_ ABSL_GUARDED_BY(mu_) = 0;  // of these, those of sessions that are not open
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_WORKER_CALLS_H_

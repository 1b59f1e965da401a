// A naive model of a shard: it stores the calls that are open and what each worker was told, and
// answers each question by looking through all of it. Of calls that have ended it keeps the count.
// Its rules are the rules of a push in server/README.md.
//
// World reports each call to the oracle first, and the oracle predicts the result. A push or pull
// that waits may be judged before or after the step that the same call applies. The oracle accepts
// both, and at the end of each call demands that nobody waits without a reason.

#ifndef SLUICE_TESTS_SIMULATION_ORACLE_H_
#define SLUICE_TESTS_SIMULATION_ORACLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "server/state/push_counters.h"
#include "server/state/shard_status.h"
#include "tests/simulation/model_checkpoint.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/step_model.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/workers_model.h"

namespace sluice {

// The state or result of a push.
enum class Fate {
  kWaiting,
  kArriving,
  kAccepted,
  kStale,
  kSkipped,
  kDuplicate,
  kRejected,
  kAborted
};
constexpr size_t kFates = static_cast<size_t>(Fate::kAborted) + 1;

// A push that waits or arrives.
struct ModelPush {
  uint64_t number = 0;
  PushHeader header;
  Values gradient;
  Fate fate = Fate::kWaiting;
  bool heard = false;  // bytes of it have come since the last tick
};

// A pull that waits.
struct ModelPull {
  PullRequest request;
  absl::optional<absl::Time> held_up_since;
};

class Oracle {
 public:
  Oracle(const Scenario& scenario, absl::Time now)
      : scenario_(scenario),
        now_(now),
        read_(now),
        ticked_(now),
        step_sum_(scenario.layout),
        consistency_(scenario.options.consistency) {}
  // A server that continues from that checkpoint.
  Oracle(const Scenario& scenario, absl::Time now, const ModelCheckpoint& checkpoint);
  // Then it makes a step of the journals again.
  void Repeat(const ModelStep& step);

  // Of a job with a journal: the steps that were made, without parameters.
  const std::vector<ModelStep>& journaled() const { return journaled_; }
  // Up to which step all servers have all on their disks.
  void NoteDurable(uint64_t step);
  // Which step must be durable before the push with this header is told what was stored; 0: none.
  uint64_t HeldUntil(const PushHeader& header) const;
  // The answer to a push waits until that step is durable.
  void Hold(SessionId session, uint64_t until) { held_.emplace(until, session); }
  // A push that waited at its header may be judged to repeat another, and hear nothing, as that
  // one's step is not durable. Then fewer pushes wait, `waiting`. Ends those, and returns them.
  std::map<uint64_t, PushVerdict> TakeSilent(uint64_t waiting);
  // A server cannot write its journal, or all can again.
  void SetJournalStopped(bool stopped) { journal_stopped_ = stopped; }
  bool journal_stopped() const { return journal_stopped_; }

  // Begins a call at this time.
  void BeginCall(absl::Time now);

  // Membership. If `reason` is set, the request is refused and the welcome's session is 0.
  Welcome Join(const JoinRequest& request, Reason* reason);
  // Usually the rules decide from which step a worker that has joined takes part. In two cases the
  // server may choose between the current step and the next: no gradient counts yet but pushes are
  // in flight; or the gradient of the worker's earlier process counts. `from` is what the server
  // chose for the latest worker. Takes over and returns `from` if it is legal; otherwise returns
  // the only legal step.
  uint64_t Concede(uint64_t from);
  Reason Heartbeat(SessionId session);
  void Lose(SessionId session);
  void NoteLostSteps() { resumes_ = true; }
  Reason Leave(SessionId session, bool fails);
  Reason Evict(const std::string& worker);
  void Tick();
  // SetConsistency() and SetLearningRate() return the first step that has the new setting.
  uint64_t SetConsistency(const Consistency& consistency);
  uint64_t SetLearningRate(double learning_rate);
  void Drain() {
    Announce("draining");
    draining_ = true;
  }
  void Initialize(const Values& parameters) { published_ = {parameters}; }
  // Returns the state that the server saves in a checkpoint. Call it after Initialize().
  ModelCheckpoint Checkpoint();

  // Pushes, by number. `fault` is an error in the header or in the payload.
  PushVerdict BeginPush(uint64_t number, const PushHeader& header, const Values& gradient,
                        Reason fault);
  void NoteChunk(uint64_t number) { pushes_.at(number).heard = true; }
  // `rows` are the gradients of rows that came with it.
  PushVerdict FinishPush(uint64_t number, const Values& rows, Reason fault);
  // The shard has only these elements of a push, whose session has ended; others are 0.
  void KeepOnly(uint64_t number, const Values& elements) { pushes_.at(number).gradient = elements; }
  void AbandonPush(uint64_t number, Fate fate) { EndPush(pushes_.at(number), fate); }
  // The stream of a push ends. Returns whether it waited at the in-flight limit.
  bool CancelPush(uint64_t number);
  // A push that waited for the in-flight limit after its header was told `told`. Returns the
  // expected verdict if it differs from `told`, otherwise "".
  // With a journal: `journaled` steps at least were in memory then.
  std::string HearAtDoor(uint64_t number, const PushVerdict& told, uint64_t journaled);

  // Pulls, by number.
  void Pull(uint64_t number, const PullRequest& request);
  bool CancelPull(uint64_t number);
  std::string HearPull(uint64_t number, const PullVerdict& told);

  // Ends a call whose callbacks have all run. Returns the broken rule, or "".
  std::string EndCall();

  // The status that the shard must report.
  PushCounters Counters() const;
  StepState Current() const;
  bool HasContributed(const std::string& worker) const { return step_sum_.Has(worker); }
  Phase phase() const;
  uint64_t step() const { return step_; }
  // The rate of a step with these options of a program, and that which the server shows.
  double LearningRate(const SharedOptions& changed) const;
  double LatestRate() const { return LearningRate(step_sum_.latest_options()); }
  uint32_t WaitingPulls() const { return static_cast<uint32_t>(pulls_.size()); }
  const Consistency& consistency() const { return consistency_; }
  bool OncePerStep() const;
  Incarnation incarnation() const { return scenario_.options.incarnation; }
  const WorkersModel& workers() const { return workers_; }
  const std::vector<Values>& published() const { return published_; }  // by step
  const Values& tolerance() const { return step_sum_.tolerance(); }
  // Replaces the latest step by the values found, which are within the tolerance.
  void Correct(absl::Span<const float> found) {
    published_.back().assign(found.begin(), found.end());
  }
  uint32_t Inside() const;         // pushes admitted by the in-flight limit
  uint64_t WaitingAtDoor() const;  // pushes that it does not admit yet
  bool initialized() const { return !published_.empty(); }
  bool started() const { return started_; }
  bool draining() const { return draining_; }
  // Events of the latest call: those of the owner, and the sessions that were evicted.
  const std::vector<std::string>& announced() const { return announced_; }
  const std::vector<uint64_t>& dismissed() const { return dismissed_; }

 private:
  struct Turn {
    enum { kNow, kNotYet, kHeldUp, kError } when = kNow;
    PullVerdict verdict;
    bool may_wait = false;  // a new process, for its predecessor's step
  };

  void Restore(const std::string& name, const ModelWorker& saved);
  bool Remembers(const JoinRequest& request) const;
  ModelWorker BeforeStep(const ModelWorker& worker) const;
  bool IsOfThisHistory(const PushHeader& header) const;
  bool IsAhead(const ModelWorker& worker) const;
  bool IsComplete() const;
  void NoteWhoIsServed();
  void JudgeWait();
  ModelWorkers Delayers() const;
  absl::optional<absl::Time> HeldUpSince() const;
  ModelWorkers Missing() const;
  uint32_t CountAbsent() const;   // workers that the first step waits for, to join
  uint32_t CountMissing() const;  // and those absent
  ModelWorkers Awaited() const;
  absl::optional<ModelRank> FirstMissing() const;
  ModelSessions SessionsInside() const;
  ModelSessions SessionsHeldInOrder() const;
  bool MayEnter(const ModelPush& push) const;

  static constexpr size_t kMostWaiting = 4;  // pushes of a session at the in-flight limit

  size_t WaitingOf(SessionId session) const;
  PushVerdict Judge(const PushHeader& header) const;
  PushVerdict JudgeAtDoor(const PushHeader& header) const;
  Turn TurnOf(const PullRequest& request) const;
  void Conclude(ModelPush& push, const PushVerdict& verdict);
  void ConcludeStale(const PushHeader& header, const PushOutcome& outcome);
  void EndPush(const ModelPush& push, Fate fate);
  void Remember(const PushHeader& header, const PushOutcome& outcome);
  PushVerdict Count(ModelPush& push, bool skipped);
  PushVerdict Take(ModelPush& push, Reason fault);
  PushVerdict Advance(ModelPush* arrival = nullptr, Reason fault = Reason::kNone);
  void Apply();
  ModelStep Journaled() const;
  bool AllArePart() const;
  uint64_t StepsInMemory() const;
  void NoteEarly();
  void NoteEarlyAtDoor();
  void Adopt();
  void EndMembership(ModelWorker& worker);
  void EndOverdueWait();
  bool MoreIsExpected(bool observers) const;
  bool AllWereLost() const;  // all workers that have joined
  bool AllAreGoneSince(absl::Time deadline) const;
  void CheckFinished();
  void Announce(const std::string& what);

  const Scenario scenario_;
  absl::Time now_;        // the server's time
  absl::Time read_;       // the clock's time at the latest call
  absl::Time ticked_;     // the latest tick
  bool overdue_ = false;  // the wait that began with HeldUpSince() is over
  WorkersModel workers_;
  StepModel step_sum_;
  Consistency consistency_;
  absl::optional<Consistency> next_consistency_;
  absl::optional<double> learning_rate_;
  absl::optional<double> next_learning_rate_;
  std::map<uint64_t, ModelPush> pushes_;     // that wait or arrive
  std::array<uint64_t, kFates> ended_ = {};  // pushes that have ended, by fate
  std::map<uint64_t, ModelPull> pulls_;      // that wait
  std::vector<Values> published_;
  uint64_t step_ = 0;
  uint64_t sessions_ = 0;
  bool restored_ = false;
  bool forgot_ = false;                     // an entry with answers that may be asked for is gone
  std::map<uint64_t, uint64_t> ancestors_;  // incarnation -> its last step of this history
  absl::optional<absl::Time> first_join_;
  bool started_ = false;
  bool had_workers_ = false;  // in the checkpoint that was restored
  bool finished_ = false;
  bool resumes_ = false;  // an earlier incarnation has made steps
  bool deserted_ = false;
  std::string joined_;       // the latest
  uint64_t joined_at_ = 0;   // at this step
  bool may_choose_ = false;  // the server may choose the first step of the latest
  bool draining_ = false;
  // The push whose answer waits until the step that it completed is published.
  absl::optional<PushHeader> unpublished_;
  // The answers that waiting pushes and pulls may have got before the call's step was applied, or
  // before the call.
  std::multimap<uint64_t, PushVerdict> early_door_;
  std::map<uint64_t, PullVerdict> early_pulls_;
  std::vector<std::string> announced_;
  std::vector<uint64_t> dismissed_;
  std::vector<ModelStep> journaled_;
  uint64_t durable_ = 0;
  std::multimap<uint64_t, SessionId> held_;  // whose answers wait, by the step that must be durable
  bool journal_stopped_ = false;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_ORACLE_H_

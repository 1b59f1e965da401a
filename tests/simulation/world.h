// One shard, with the other servers that it leads, and its oracle. Each method is one event: the
// world reports it to both and then checks every rule of the contract (server/README.md).
//
// With several servers, a call of a worker is one call to each. They come in any order, and with
// them the messages between the servers, until nothing is under way. The oracle hears of the call
// only. A stream to another server than the shard's may come in a later event. If a server is
// killed in an event, all go back to the newest checkpoint at its end (world_return.cc).

#ifndef SLUICE_TESTS_SIMULATION_WORLD_H_
#define SLUICE_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "tests/simulation/job_disks.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/servers.h"
#include "tests/simulation/simulated_calls.h"
#include "tests/simulation/twin_rows.h"
#include "tests/simulation/verdict.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/vectors.h"

namespace sluice {

class World {
 public:
  // Appends a line for each event to `log`, unless it is null.
  World(const Scenario& scenario, std::vector<std::string>* log);

  // The broken rule, or "". After a violation no other method may be called.
  const std::string& violation() const { return violation_; }
  bool ok() const { return violation_.empty(); }

  absl::optional<Welcome> Join(const JoinRequest& request);
  void Lose(SessionId session);
  void Leave(SessionId session, bool fails = false);
  void Heartbeat(SessionId session);
  // Advances the clock, sends heartbeats, and lets the shard tick, as often as it expects.
  void Pass(absl::Duration duration, const std::vector<SessionId>& heartbeats);
  // The server's process stands still for so long, and hears nobody.
  void Stop(absl::Duration duration);
  void Initialize(SessionId session, const Values& parameters);
  // Several servers: two workers offer parameters at the same time.
  void InitializeTwice(SessionId one, SessionId other, const Values& parameters);
  // Several servers: in the part of one server an element is not finite or is missing, or the
  // stream to it breaks.
  void InitializeInVain(SessionId session, const Values& parameters);
  void SetConsistency(const Consistency& consistency);
  void SetLearningRate(double learning_rate);
  void Evict(const std::string& worker);
  void Drain();

  // Takes a checkpoint. Call it when there are parameters. With several servers, it exists when all
  // have written their files, which may be many events later.
  void TakeCheckpoint();
  bool has_checkpoint() const { return checkpoint_ != nullptr; }
  // Kills the server and starts it again from the latest checkpoint, which cannot be used again.
  void Restart();
  // Several servers: kills one, now or when so many more calls and messages have come.
  void Kill(uint32_t server, uint64_t acts);
  // A server that was to be killed is not.
  void Spare();
  // With a journal: there is no space on a server's disk from now on.
  void FillDisk(uint32_t server);
  // There is again, on all.
  void FreeDisks();
  // All that the servers have begun to write comes to their disks.
  void Sync();
  // How often the servers went back to a checkpoint.
  uint64_t returns() const { return returns_; }

  // Pushes, by number. `fault` is an error in the header. `original` is the push that it repeats.
  uint64_t BeginPush(const PushHeader& header, const Values& gradient, Reason fault = Reason::kNone,
                     absl::optional<uint64_t> original = absl::nullopt);
  // An invalid chunk ends the push.
  void AddChunk(uint64_t push, uint64_t offset, const Values& elements);
  // Ends the streams to those servers, by bit.
  void FinishPush(uint64_t push, uint64_t servers = kAllServers);
  void AbandonPush(uint64_t push, Abandoned why);
  // Ends the stream of a push that waits at its header. For other pushes it does nothing. Not for
  // one of an earlier incarnation of the server.
  void CancelPush(uint64_t push);
  uint64_t pushes() const { return pushes_.size(); }
  const SimulatedPush& push(uint64_t number) const { return *pushes_.at(number); }
  // The pushes that are arriving.
  std::vector<uint64_t> Arriving() const { return {arriving_.begin(), arriving_.end()}; }

  uint64_t Pull(const PullRequest& request);
  void CancelPull(uint64_t pull);
  const SimulatedPull& pull(uint64_t number) const { return *pulls_.at(number); }
  uint64_t pulls() const { return pulls_.size(); }

  // Checks that nothing is in flight and that every call was answered once.
  void CheckEnd();
  // Reports a broken rule that only the driver can see.
  void Fail(const std::string& what);

  const Oracle& oracle() const { return *oracle_; }
  // The process of a session, as the server tells processes apart: a process that the server had
  // forgotten counts as another one.
  uint64_t ProcessOf(SessionId session) const { return process_of_.at(session.value()); }

  static constexpr uint64_t kAllServers = ~uint64_t{0};

 private:
  static constexpr uint64_t kHeldEvery = 16;  // pulls

  // Begins an event. `words` returns its text, and is called only if somebody reads it.
  template <typename Words>
  void Begin(const Words& words) {
    ++event_;
    if (log_ != nullptr) {
      call_ = words();
      log_->push_back(absl::StrCat("  ", event_, ". ", call_));
    }
    heard_.clear();
    owner_heard_.clear();
    dismissed_.clear();
    quiet_ = false;
    oracle_->BeginCall(clock_.Now());
  }
  void End();
  // Adds a line to the log. `words` returns it, and is called only if there is a log.
  template <typename Words>
  void Note(const Words& words) {
    if (log_ != nullptr) log_->push_back(absl::StrCat("       ", words()));
  }
  template <typename Value>
  void Expect(const char* rule, const Value& found, const Value& expected) {
    if (found == expected || interrupted()) return;
    Fail(absl::StrCat(rule, ": found ", found, ", expected ", expected));
  }
  void ExpectReason(const absl::Status& found, Reason expected);

  Shard& shard() { return servers_->shard(); }
  std::unique_ptr<Servers> MakeServers();
  void BeginIncarnation();
  void PassTick(absl::Duration duration, const std::vector<SessionId>& heartbeats);
  void ForgetCallsInFlight();
  void ForgetAnswers();
  // The return of several servers.
  bool interrupted() const { return !judging_ && servers_->dead().has_value(); }
  void EndByDeath();
  void JudgeHeard(size_t from);
  void HearLate(const Heard& heard);
  void EndIncarnation();
  void CheckEndedCalls();
  void CheckReached(uint64_t step);
  void BeginAnew();
  void Recover(const JobDisks::Checkpoint& checkpoint);
  void ExpectAnew(const JobDisks::Checkpoint& checkpoint);
  void JoinTooEarly();
  void PlanDeath(uint32_t server, uint64_t acts);
  void WriteCheckpoints();
  void TellWhole();
  void CheckDisks();
  void FinishCheckpoints();
  // Journals.
  void StartServing(Step begin);
  Step LastRepeated(const JobDisks::Checkpoint& checkpoint);
  void ExpectRepeated(const JobDisks::Checkpoint& checkpoint, Step last);
  void KeepModelSteps();
  bool RepeatSteps(const LoadCheckpoint& load);
  absl::Status RepeatUpTo(Step last);
  void CheckRepeated();
  void SaveRepeated();
  void CheckHeldAnswersFailed();
  void SyncJournals();
  void TellStopped();
  void NoteDurable();
  void KeepUnanswered();
  void FailHeldAnswers();
  void Hear(Heard::What what, uint64_t number, const PushVerdict& verdict);
  bool TakeDue(const Heard& heard);
  bool IsOpen(SessionId session) const { return oracle_->workers().Of(session.value()) != nullptr; }
  // In this incarnation of the server.
  bool HasJoined(SessionId session) const {
    return session > scenario_.options.session_base && process_of_.count(session.value()) > 0;
  }

  // Offers of parameters.
  using OfferPtr = std::shared_ptr<SimulatedOffer>;
  SimulatedOffer MakeOffer(SessionId session, const Values& parameters);
  void Offer(const std::vector<SimulatedOffer>& offers);
  void OfferToShard(const OfferPtr& offer, bool first);
  void OfferToReplica(const OfferPtr& offer, uint32_t server);
  void TakeOffer(const OfferPtr& offer, uint32_t server, std::unique_ptr<PendingPush> part);
  void FinishOffer(const OfferPtr& offer, std::unique_ptr<PendingPush> part);
  void EndOffer(const OfferPtr& offer);
  void CheckOffer(const SimulatedOffer& offer);
  void CancelOffer(SimulatedOffer& offer);

  // The parts of pushes and pulls.
  void BeginAtShard(uint64_t push, const absl::StatusOr<PushHeader>& header);
  void BeginElsewhere(uint64_t push);
  void CancelParts(uint64_t push);
  void PullFromShard(uint64_t pull);
  void BeginPart(uint64_t push, uint32_t server);
  void HearPart(uint64_t push, uint32_t server, absl::StatusOr<std::unique_ptr<PendingPush>> part);
  absl::Status SendRows(uint64_t push, uint32_t server);
  void EndParts(uint64_t push, const std::vector<PartEnd>& ends);
  void EndPart(uint64_t push, const PartEnd& end);
  void EndCall(uint64_t push);
  void PullPartOf(uint64_t pull, uint32_t server);
  void SendLateParts();
  void NoteEndedGathering();
  void ExpectAnswer(uint64_t push);
  void CheckParts();
  bool CheckPart(uint64_t push, uint32_t server);
  bool CheckPullPart(uint64_t pull, uint32_t server);
  void JudgePullPart(uint64_t pull, uint32_t server);
  void CheckPulledStripe(uint64_t pull, const PullResult& result, uint32_t server);

  void Hear(absl::StatusOr<PushStart> start, uint64_t push);
  void CheckHeld();
  void CheckCountedOnce(const SimulatedPush& push, const PushOutcome& outcome);
  void Hear(const Heard& heard);
  void HearStart(const Heard& heard);
  void HearAnswer(const Heard& heard);
  void HearCancel(const Heard& heard);
  void HearPull(const Heard& heard);
  void CheckPulled(uint64_t pull);
  void CheckFirstAnswer(const PushHeader& header, const PushOutcome& outcome);
  void CheckParameters();
  void CompareParameters(const Values& found, uint64_t step);
  void CheckState();
  void CheckCurrent(const StepState& found);
  void CheckEvents();
  void CheckCancels();

  Scenario scenario_;  // its incarnation changes
  const TwinRows twins_;
  std::vector<std::string>* const log_;
  FakeClock clock_;
  std::vector<std::string> owner_heard_;
  std::vector<uint64_t> dismissed_;
  JobDisks disks_;
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<Oracle> oracle_;
  std::shared_ptr<const ShardCheckpoint> checkpoint_;
  ModelCheckpoint expected_checkpoint_;
  uint64_t returns_ = 0;
  uint64_t lost_steps_ = 0;   // that workers must be told of
  uint64_t reached_ = 0;      // the last step of the incarnation before
  bool judging_ = false;      // what was heard before a server died
  size_t heard_in_time_ = 0;  // of heard_: before that
  absl::optional<JoinRequest> latest_join_;
  std::string violation_;
  std::string call_;
  uint64_t event_ = 0;
  uint64_t step_ = 0;
  bool quiet_ = false;  // nothing becomes durable in this event
  std::vector<Heard> heard_;
  std::map<uint64_t, DueAnswer> due_;  // the answers that pushes must get
  // Of all incarnations, by incarnation and step.
  std::map<std::pair<uint64_t, uint64_t>, ModelStep> model_steps_;
  absl::optional<uint64_t> repeats_;                // up to this step, while the servers begin anew
  Values repeated_tolerance_;                       // of that step
  std::shared_ptr<const ShardCheckpoint> initial_;  // of the first parameters
  std::vector<std::unique_ptr<SimulatedPush>> pushes_;
  std::set<uint64_t> arriving_;   // those that are arriving
  std::set<uint64_t> gathering_;  // those of which the shard has its part, and not all others
  std::set<uint64_t> in_parts_;   // those with parts that have not ended, at other servers
  std::vector<std::unique_ptr<SimulatedPull>> pulls_;
  std::set<uint64_t> pulled_in_parts_;                   // likewise
  std::vector<OfferPtr> offers_;                         // of this event
  std::map<uint64_t, uint32_t> attempts_;                // session -> the latest
  std::map<uint64_t, uint64_t> latest_pulls_;            // session -> the number of the latest
  std::vector<std::shared_ptr<const Snapshot>> latest_;  // that were compared, by server
  std::map<uint64_t, uint64_t> process_of_;              // session -> first session of its process
  std::map<std::pair<uint64_t, uint64_t>, PushOutcome> first_answers_;  // process, sequence
  // The pushes that count, and the step that each is part of.
  std::map<uint64_t, uint64_t> counted_;
  // Snapshots that a slow reader holds, and their values, which must never change.
  std::vector<std::pair<std::shared_ptr<const Snapshot>, Values>> held_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_WORLD_H_

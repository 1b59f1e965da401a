// One shard and its oracle. Each method is one event: the world reports it to both and then checks
// every rule of the contract (server/README.md).

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
#include "server/shard/shard.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/verdict.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/vectors.h"

namespace sluice {

struct SimulatedPush {
  PushHeader header;
  Values gradient;
  std::unique_ptr<PendingPush> pending;  // null unless the push is arriving
  uint64_t arrived = 0;                  // elements
  PushId id;                             // not 0 if it has waited at its header
  bool cancelled = false;                // while it waited
  int starts = 0;
  int answers = 0;
  int cancels = 0;
  bool whole = false;                // finished or refused: an answer is due
  bool past = false;                 // begun in an earlier incarnation of the server
  uint64_t original = 0;             // the push that it repeats, or itself
  absl::optional<PushVerdict> told;  // the latest; "may continue" while it arrives
};

struct SimulatedPull {
  PullRequest request;
  PullId id;
  int answers = 0;
  bool cancelled = false;
  bool past = false;                  // begun in an earlier incarnation of the server
  absl::StatusOr<PullResult> result;  // an error before there is an answer
};

class World {
 public:
  // Appends a line for each event to `log`, unless it is null.
  World(const Scenario& scenario, std::vector<std::string>* log);

  // The broken rule, or "". After a violation no other method may be called.
  const std::string& violation() const { return violation_; }
  bool ok() const { return violation_.empty(); }

  absl::optional<Welcome> Join(const JoinRequest& request);
  void Lose(SessionId session);
  void Leave(SessionId session);
  void Heartbeat(SessionId session);
  // Advances the clock, sends heartbeats, and lets the shard tick, as often as it expects.
  void Pass(absl::Duration duration, const std::vector<SessionId>& heartbeats);
  // The server's process stands still for so long, and hears nobody.
  void Stop(absl::Duration duration);
  void Initialize(SessionId session, const Values& parameters);
  void SetConsistency(const Consistency& consistency);
  void SetLearningRate(double learning_rate);
  void Evict(const std::string& worker);
  void Drain();

  // Takes a checkpoint. Call it when there are parameters.
  void TakeCheckpoint();
  bool has_checkpoint() const { return checkpoint_ != nullptr; }
  // Kills the server and starts it again from the latest checkpoint, which cannot be used again.
  void Restart();

  // Pushes, by number. `fault` is an error in the header. `original` is the push that it repeats.
  uint64_t BeginPush(const PushHeader& header, const Values& gradient, Reason fault = Reason::kNone,
                     absl::optional<uint64_t> original = absl::nullopt);
  // An invalid chunk ends the push.
  void AddChunk(uint64_t push, uint64_t offset, const Values& elements);
  void FinishPush(uint64_t push);
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

 private:
  struct Heard {
    enum { kStart, kAnswer, kCancel, kPull } what;
    uint64_t number;
    PushVerdict verdict;
  };

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
    if (found == expected) return;
    Fail(absl::StrCat(rule, ": found ", found, ", expected ", expected));
  }
  void ExpectReason(const absl::Status& found, Reason expected);

  std::unique_ptr<Shard> MakeShard();
  void PassTick(absl::Duration duration, const std::vector<SessionId>& heartbeats);
  void ForgetCallsInFlight();
  std::unique_ptr<PendingPush> TakePending(uint64_t push);
  void Hear(absl::StatusOr<PushStart> start, uint64_t push);
  void CheckHeld();
  void CheckCountedOnce(const SimulatedPush& push, const PushOutcome& outcome);
  void Hear(const Heard& heard);
  void HearStart(const Heard& heard);
  void HearAnswer(const Heard& heard);
  void HearCancel(const Heard& heard);
  void HearPull(const Heard& heard);
  void CheckFirstAnswer(const PushHeader& header, const PushOutcome& outcome);
  void CheckParameters();
  void CheckState();
  void CheckCurrent(const StepState& found);
  void CheckEvents();
  void CheckCancels();

  Scenario scenario_;  // its incarnation changes
  std::vector<std::string>* const log_;
  FakeClock clock_;
  std::vector<std::string> owner_heard_;
  std::vector<uint64_t> dismissed_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<Oracle> oracle_;
  std::shared_ptr<const ShardCheckpoint> checkpoint_;
  ModelCheckpoint expected_checkpoint_;
  std::string violation_;
  std::string call_;
  uint64_t event_ = 0;
  uint64_t step_ = 0;
  std::vector<Heard> heard_;
  absl::optional<std::pair<uint64_t, PushVerdict>>
      due_;  // the answer that a push must get in this call
  std::vector<std::unique_ptr<SimulatedPush>> pushes_;
  std::set<uint64_t> arriving_;  // those that are pending
  std::vector<std::unique_ptr<SimulatedPull>> pulls_;
  std::map<uint64_t, uint64_t> process_of_;  // session -> first session of its process
  std::map<std::pair<uint64_t, uint64_t>, PushOutcome> first_answers_;  // process, sequence
  // The pushes that count, and the step that each is part of.
  std::map<uint64_t, uint64_t> counted_;
  // Snapshots that a slow reader holds, and their values, which must never change.
  std::vector<std::pair<std::shared_ptr<const Snapshot>, Values>> held_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_WORLD_H_

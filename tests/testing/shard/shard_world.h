// A shard with a fake clock and its workers. Each verb is one action of a worker:
//
//   ShardWorld world(Sync(2));
//   world.Start({"a", "b"});
//   EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), Accepted(0));

#ifndef SLUICE_TESTS_TESTING_SHARD_SHARD_WORLD_H_
#define SLUICE_TESTS_TESTING_SHARD_SHARD_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/vectors.h"

namespace sluice {

// A job launched with that many workers (one, where none are named); its lease is 10 s.
ShardOptions Sync(uint32_t workers);
ShardOptions Backup(uint32_t quorum, uint32_t workers);
ShardOptions Bounded(uint32_t quorum, uint32_t max_staleness);
ShardOptions Ssp(uint32_t slack, uint32_t workers);
ShardOptions Async(uint32_t quorum);

// Learning rate 1, nothing else: a step subtracts the mean gradient.
SgdOptions PlainSgd();

// A pull under way. Copies share it.
class TestPull {
 public:
  bool answered() const { return state_->calls > 0; }
  bool Cancel() { return state_->shard->CancelPull(state_->id); }

  // Of a pull that was answered; `values` is empty if it was an error or not modified.
  const absl::StatusOr<PullResult>& result() const { return state_->result; }
  uint64_t step() const { return result().value().header.step.value(); }
  Values values() const;

 private:
  friend class ShardWorld;
  struct State {
    Shard* shard = nullptr;
    PullId id;
    int calls = 0;
    absl::StatusOr<PullResult> result = absl::UnknownError("not answered");
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A push at the door. Copies share it.
struct TestStart {
  bool told() const { return state->calls > 0; }
  bool let_in() const { return state->start.ok() && state->start->push != nullptr; }
  absl::Status status() const { return state->start.status(); }
  // Of one that was told, and not let in.
  absl::StatusOr<PushOutcome> answer() const {
    if (!status().ok()) return status();
    return state->start->answer;
  }
  std::unique_ptr<PendingPush> Take() { return std::move(state->start.value().push); }

  struct State {
    int calls = 0;
    int cancelled = 0;
    absl::StatusOr<PushStart> start = absl::UnknownError("not told");
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

// For one thread; only the shard it holds is for many. Its end expects that the counters balance
// and no push is left in progress, and that no pull was answered twice.
class ShardWorld {
 public:
  // The default model is a tensor "w" of three parameters.
  explicit ShardWorld(const ShardOptions& options, const Layout& layout = ParametersOnly(3),
                      const OptimizerOptions& optimizer = PlainSgd());
  ~ShardWorld();

  // Sessions. Workers and observers go by name; each is a process that keeps its nonce until it
  // restarts.
  JoinRequest RequestOf(const std::string& name);
  absl::StatusOr<Welcome> JoinAs(const JoinRequest& request);
  absl::StatusOr<Welcome> Join(const std::string& name) { return JoinAs(RequestOf(name)); }
  absl::StatusOr<Welcome> Observe(const std::string& name);
  absl::StatusOr<Welcome> Restart(const std::string& name);
  void Lose(const std::string& name) { shard_.ConnectionLost(session(name)); }
  absl::StatusOr<uint64_t> Leave(const std::string& name, const Results& results = {});
  SessionId session(const std::string& name) const { return sessions_.at(name); }

  // All of them join; the parameters are 0.
  void Start(const std::vector<std::string>& workers);

  // Lets time pass, then ticks. All sessions that are alive send heartbeats, but for those that
  // have fallen silent.
  void Pass(absl::Duration duration);
  void Silence(const std::string& name) { silent_.insert(name); }

  // Offers parameters in the name of whoever joined last.
  absl::StatusOr<InitializeOutcome> Initialize(const Values& parameters);

  // Pushes. Each has the worker's next sequence; Repeat has the last one's.
  absl::StatusOr<PushOutcome> Push(const std::string& name, uint64_t step, const Values& gradient);
  absl::StatusOr<PushOutcome> Repeat(const std::string& name, uint64_t step,
                                     const Values& gradient);
  PushHeader NextHeader(const std::string& name, uint64_t step);
  absl::StatusOr<PushOutcome> PushAs(const PushHeader& header, const Values& gradient);
  // One that is let in at once, still to arrive.
  std::unique_ptr<PendingPush> Begin(const std::string& name, uint64_t step);
  // One that may have to wait until it is let in.
  TestStart BeginAs(const absl::StatusOr<PushHeader>& header);
  absl::StatusOr<PushOutcome> Finish(std::unique_ptr<PendingPush> push, const Values& gradient);

  // Pulls in the name of whoever joined last.
  TestPull Pull(uint64_t min_step, absl::optional<uint64_t> have_step = absl::nullopt);
  TestPull PullAs(SessionId session, uint64_t min_step,
                  absl::optional<uint64_t> have_step = absl::nullopt);
  // The worker asks for the parameters to go on with after its latest push.
  TestPull GoOn(const std::string& name);
  TestPull PullAs(const PullRequest& request);

  // The latest snapshot's.
  Values Parameters() const;
  uint64_t step() const { return shard_.Describe().step.value(); }
  std::string Counters() const;
  // Who holds up the others, in order of name.
  std::vector<std::string> Awaited() const;
  // What that session's listener was told, for example "finished 3", "draining 3", "evicted 0",
  // "policy backup 3"; "owner" is the owner's.
  std::vector<std::string> Heard(const std::string& name);

  Shard& shard() { return shard_; }
  FakeClock& clock() { return clock_; }

 private:
  JobListener ListenerOf(const std::string& name);

  const Layout layout_;
  const OptimizerOptions optimizer_;
  FakeClock clock_;
  absl::Mutex mu_;  // for what the shard's callers hear, on threads of their own
  std::map<std::string, std::vector<std::string>> heard_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> nonces_;
  std::map<std::string, uint64_t> sequences_;
  std::map<std::string, SessionId> sessions_;
  std::set<std::string> silent_;
  SessionId last_joined_;
  std::vector<TestPull> pulls_;
  Shard shard_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SHARD_WORLD_H_

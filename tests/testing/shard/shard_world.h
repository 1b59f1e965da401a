// A shard with a fake clock, and its workers. Each method is one action of a worker:
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

// Options of a job in each mode. It is launched with `workers` workers, or with one if there is no
// such argument. Its lease is 10 s.
ShardOptions Sync(uint32_t workers);
ShardOptions Backup(uint32_t quorum, uint32_t workers);
ShardOptions Bounded(uint32_t quorum, uint32_t max_staleness);
ShardOptions Ssp(uint32_t slack, uint32_t workers);
ShardOptions Async(uint32_t quorum);

// SGD with learning rate 1 and no other option: a step subtracts the mean gradient.
SgdOptions PlainSgd();

// A pull that was started. Copies share it.
class TestPull {
 public:
  bool answered() const { return state_->calls > 0; }
  bool Cancel() { return state_->shard->store().CancelPull(state_->id); }

  // The answer; call these if answered(). values() is empty after an error, and if the answer is
  // that the parameters were not modified.
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

// A push whose header was sent, and which the in-flight limit may make wait. Copies share it.
struct TestStart {
  // Whether the shard has admitted the push or answered it.
  bool told() const { return state->calls > 0; }
  // Whether the push was admitted: its gradient may be sent.
  bool let_in() const { return state->start.ok() && state->start->push != nullptr; }
  absl::Status status() const { return state->start.status(); }
  // The answer; call it if told() and not let_in().
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

// Used by one thread; any thread may call shard(). The destructor expects that the push counters
// add up, that no push is in progress, and that no pull was answered twice.
class ShardWorld {
 public:
  // The default model is a tensor "w" of three parameters.
  explicit ShardWorld(const ShardOptions& options, const Layout& layout = ParametersOnly(3),
                      const OptimizerOptions& optimizer = PlainSgd());
  ~ShardWorld();

  // Sessions. A test names workers and observers by their names. Each is a process, whose nonce
  // stays the same until Restart().
  JoinRequest RequestOf(const std::string& name);
  absl::StatusOr<Welcome> JoinAs(const JoinRequest& request);
  absl::StatusOr<Welcome> Join(const std::string& name) { return JoinAs(RequestOf(name)); }
  absl::StatusOr<Welcome> Observe(const std::string& name);
  absl::StatusOr<Welcome> Restart(const std::string& name);
  void Lose(const std::string& name) { shard_.ConnectionLost(session(name)); }
  absl::StatusOr<uint64_t> Leave(const std::string& name, const Results& results = {});
  SessionId session(const std::string& name) const { return sessions_.at(name); }

  // Lets all of them join, and initializes the parameters with 0.
  void Start(const std::vector<std::string>& workers);

  // Lets time pass, then ticks. All sessions that are alive send heartbeats meanwhile, except those
  // for which Silence() was called.
  void Pass(absl::Duration duration);
  void Silence(const std::string& name) { silent_.insert(name); }

  // Offers parameters through the session that was opened last.
  absl::StatusOr<InitializeOutcome> Initialize(const Values& parameters);

  // Pushes. Each has the worker's next sequence; Repeat() has the sequence of the worker's last
  // push.
  absl::StatusOr<PushOutcome> Push(const std::string& name, uint64_t step, const Values& gradient);
  absl::StatusOr<PushOutcome> Repeat(const std::string& name, uint64_t step,
                                     const Values& gradient);
  PushHeader NextHeader(const std::string& name, uint64_t step);
  absl::StatusOr<PushOutcome> PushAs(const PushHeader& header, const Values& gradient);
  // Begins a push that is admitted at once. Its gradient has not arrived yet.
  std::unique_ptr<PendingPush> Begin(const std::string& name, uint64_t step);
  // Begins a push that may have to wait until it is admitted.
  TestStart BeginAs(const absl::StatusOr<PushHeader>& header);
  absl::StatusOr<PushOutcome> Finish(std::unique_ptr<PendingPush> push, const Values& gradient);

  // Pulls. Without a session or a name, through the session that was opened last.
  TestPull Pull(uint64_t min_step, absl::optional<uint64_t> have_step = absl::nullopt);
  TestPull PullAs(SessionId session, uint64_t min_step,
                  absl::optional<uint64_t> have_step = absl::nullopt);
  // Pulls the parameters with which the worker continues after its latest push.
  TestPull GoOn(const std::string& name);
  TestPull PullAs(const PullRequest& request);

  // The parameters of the latest snapshot.
  Values Parameters();
  uint64_t step() const { return shard_.Describe().step.value(); }
  std::string Counters() const;
  // The names of the workers for which others wait, in ascending order.
  std::vector<std::string> Awaited() const;
  // The events that the listener of that worker's session got, for example "finished 3",
  // "draining 3", "evicted 0", "policy backup 3". The name "owner" means the listener of the
  // shard's owner.
  std::vector<std::string> Heard(const std::string& name);

  Shard& shard() { return shard_; }
  FakeClock& clock() { return clock_; }

 private:
  JobListener ListenerOf(const std::string& name);

  const Layout layout_;
  const OptimizerOptions optimizer_;
  FakeClock clock_;
  absl::Mutex mu_;  // listeners are called on other threads
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

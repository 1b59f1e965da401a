#include "tests/testing/shard/shard_world.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

std::string Words(const JobEvent& event) {
  const auto with_step = [&event](absl::string_view kind) {
    return absl::StrCat(kind, " ", event.step.value());
  };
  switch (event.kind) {
    case JobEvent::Kind::kTrainingFinished:
      return with_step("finished");
    case JobEvent::Kind::kDraining:
      return absl::StrCat(with_step("draining"),
                          event.diverged.empty() ? "" : " because training diverges");
    case JobEvent::Kind::kEvicted:
      return with_step("evicted");
    case JobEvent::Kind::kPolicyChanged:
      return with_step(absl::StrCat("policy ", ConsistencyModeName(event.consistency.mode)));
    case JobEvent::Kind::kDeserted:
      break;
  }
  return with_step("deserted");
}

ShardOptions OfMode(ConsistencyMode mode, uint32_t workers = 1) {
  ShardOptions options;
  options.job_id = "job";
  options.consistency.mode = mode;
  options.expected_workers = workers;
  return options;
}

}  // namespace

ShardOptions Sync(uint32_t workers) { return OfMode(ConsistencyMode::kSync, workers); }

ShardOptions Backup(uint32_t quorum, uint32_t workers) {
  ShardOptions options = OfMode(ConsistencyMode::kBackup, workers);
  options.consistency.quorum = quorum;
  return options;
}

ShardOptions Bounded(uint32_t quorum, uint32_t max_staleness) {
  ShardOptions options = OfMode(ConsistencyMode::kBounded);
  options.consistency.quorum = quorum;
  options.consistency.max_staleness = max_staleness;
  return options;
}

ShardOptions Ssp(uint32_t slack, uint32_t workers) {
  ShardOptions options = OfMode(ConsistencyMode::kSsp, workers);
  options.consistency.slack = slack;
  return options;
}

ShardOptions Async(uint32_t quorum) {
  ShardOptions options = OfMode(ConsistencyMode::kAsync);
  options.consistency.quorum = quorum;
  return options;
}

SgdOptions PlainSgd() {
  SgdOptions options;
  options.learning_rate = 1;
  return options;
}

Values TestPull::values() const {
  if (!result().ok() || result()->snapshot == nullptr) return {};
  return ValuesOf(result()->snapshot->values.span());
}

ShardWorld::ShardWorld(const ShardOptions& options, const Layout& layout,
                       const OptimizerOptions& optimizer)
    : layout_(layout), optimizer_(optimizer), shard_(options, clock_, ListenerOf("owner")) {}

ShardWorld::~ShardWorld() {
  const PushCounters counters = shard_.Describe().counters;
  EXPECT_TRUE(counters.Balanced()) << Columns(counters);
  EXPECT_EQ(counters.in_progress, 0u);
  for (const TestPull& pull : pulls_) EXPECT_LE(pull.state_->calls, 1);
}

JobListener ShardWorld::ListenerOf(const std::string& name) {
  return [this, name](const JobEvent& event) {
    absl::MutexLock lock(&mu_);
    heard_[name].push_back(Words(event));
  };
}

std::vector<std::string> ShardWorld::Heard(const std::string& name) {
  absl::MutexLock lock(&mu_);
  return heard_[name];
}

JoinRequest ShardWorld::RequestOf(const std::string& name) {
  JoinRequest request;
  request.job_id = "job";
  request.worker = name;
  request.process_nonce = ProcessNonce(nonces_.emplace(name, 1000 + nonces_.size()).first->second);
  request.host = "node";
  request.pid = 7;
  request.layout = layout_;
  request.optimizer.options = optimizer_;
  return request;
}

absl::StatusOr<Welcome> ShardWorld::JoinAs(const JoinRequest& request) {
  absl::StatusOr<Welcome> welcome = shard_.Join(request, ListenerOf(request.worker));
  if (welcome.ok()) sessions_[request.worker] = last_joined_ = welcome->session;
  return welcome;
}

absl::StatusOr<Welcome> ShardWorld::Observe(const std::string& name) {
  JoinRequest request = RequestOf(name);
  request.role = SessionRole::kObserver;
  return JoinAs(request);
}

absl::StatusOr<Welcome> ShardWorld::Restart(const std::string& name) {
  if (sessions_.count(name) > 0) Lose(name);  // the process before has died
  nonces_[name] += 1000000;
  sequences_[name] = 0;
  return Join(name);
}

absl::StatusOr<uint64_t> ShardWorld::Leave(const std::string& name, const Results& results) {
  const absl::StatusOr<Step> step = shard_.Leave(session(name), {results});
  if (!step.ok()) return step.status();
  return step->value();
}

void ShardWorld::Start(const std::vector<std::string>& workers) {
  for (const std::string& worker : workers) EXPECT_THAT(Join(worker), IsOk());
  EXPECT_THAT(Initialize(Values(layout_.size())), IsOk());
}

void ShardWorld::Pass(absl::Duration duration) {
  clock_.Advance(duration);
  for (const auto& session : sessions_) {
    if (silent_.count(session.first) == 0) shard_.Heartbeat(session.second).IgnoreError();
  }
  shard_.Tick();
}

absl::StatusOr<InitializeOutcome> ShardWorld::Initialize(const Values& parameters) {
  absl::StatusOr<InitializeStart> start = shard_.store().BeginInitialize(last_joined_);
  if (!start.ok()) return start.status();
  if (start->parameters == nullptr) return start->answer;
  const absl::Status added = start->parameters->Add(ChunkOf(0, parameters));
  if (!added.ok()) return added;
  return FinishOffer(shard_, std::move(start->parameters));
}

PushHeader ShardWorld::NextHeader(const std::string& name, uint64_t step) {
  PushHeader header;
  header.session = session(name);
  header.sequence = Sequence(++sequences_[name]);
  header.step = Step(step);
  header.incarnation = Incarnation(1);
  return header;
}

absl::StatusOr<PushOutcome> ShardWorld::Push(const std::string& name, uint64_t step,
                                             const Values& gradient) {
  return PushAs(NextHeader(name, step), gradient);
}

absl::StatusOr<PushOutcome> ShardWorld::Repeat(const std::string& name, uint64_t step,
                                               const Values& gradient) {
  --sequences_[name];
  return Push(name, step, gradient);
}

absl::StatusOr<PushOutcome> ShardWorld::PushAs(const PushHeader& header, const Values& gradient) {
  TestStart start = BeginAs(header);
  if (!start.let_in()) return start.answer();
  return Finish(start.Take(), gradient);
}

std::unique_ptr<PendingPush> ShardWorld::Begin(const std::string& name, uint64_t step) {
  TestStart start = BeginAs(NextHeader(name, step));
  EXPECT_TRUE(start.let_in()) << start.status();
  return start.Take();
}

TestStart ShardWorld::BeginAs(const absl::StatusOr<PushHeader>& header) {
  TestStart start;
  shard_.store().BeginPush(
      header,
      [state = start.state](absl::StatusOr<PushStart> told) {
        ++state->calls;
        state->start = std::move(told);
      },
      [state = start.state] { ++state->cancelled; });
  return start;
}

absl::StatusOr<PushOutcome> ShardWorld::Finish(std::unique_ptr<PendingPush> push,
                                               const Values& gradient) {
  int calls = 0;
  absl::StatusOr<PushOutcome> answer = absl::UnknownError("not answered");
  const PushCallback done = [&](const absl::StatusOr<PushOutcome>& outcome) {
    ++calls;
    answer = outcome;
  };
  const absl::Status added = push->Add(ChunkOf(0, gradient));
  if (added.ok()) {
    shard_.store().FinishPush(std::move(push), done);
  } else {
    shard_.store().RefusePush(std::move(push), added, done);
  }
  EXPECT_EQ(calls, 1);
  return answer;
}

TestPull ShardWorld::Pull(uint64_t min_step, absl::optional<uint64_t> have_step) {
  return PullAs(last_joined_, min_step, have_step);
}

TestPull ShardWorld::PullAs(SessionId session, uint64_t min_step,
                            absl::optional<uint64_t> have_step) {
  PullRequest request;
  request.session = session;
  request.min_step = Step(min_step);
  if (have_step.has_value()) request.have_step = Step(*have_step);
  return PullAs(request);
}

TestPull ShardWorld::GoOn(const std::string& name) {
  PullRequest request;
  request.session = session(name);
  request.after = Sequence(sequences_[name]);
  return PullAs(request);
}

TestPull ShardWorld::PullAs(const PullRequest& request) {
  TestPull pull;
  pull.state_->shard = &shard_;
  pull.state_->id =
      shard_.store().Pull(request, [state = pull.state_](absl::StatusOr<PullResult> result) {
        ++state->calls;
        state->result = std::move(result);
      });
  pulls_.push_back(pull);
  return pull;
}

Values ShardWorld::Parameters() {
  const std::shared_ptr<const Snapshot> snapshot = shard_.store().stripe().latest();
  return snapshot == nullptr ? Values() : ValuesOf(snapshot->values.span());
}

std::string ShardWorld::Counters() const { return Columns(shard_.Describe().counters); }

std::vector<std::string> ShardWorld::Awaited() const {
  std::vector<std::string> names;
  for (const AwaitedWorker& awaited : shard_.Describe().current.awaited) {
    names.push_back(awaited.worker);
  }
  return names;
}

}  // namespace sluice

#include "server/membership/roster.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1000);

ShardOptions Options(uint32_t expected_workers,
                     absl::Duration start_timeout = absl::InfiniteDuration()) {
  ShardOptions options;
  options.job_id = "job";
  options.expected_workers = expected_workers;
  options.start_timeout = start_timeout;
  options.lease = absl::Seconds(10);
  options.max_sessions = 8;
  return options;
}

// A roster, a clock, and the events that each listener received.
class RosterWorld {
 public:
  explicit RosterWorld(const ShardOptions& options) : roster(options, ListenerOf("owner")) {}

  JoinRequest RequestOf(const std::string& name) const {
    JoinRequest request;
    request.job_id = "job";
    request.worker = name;
    request.process_nonce = ProcessNonce(1);
    request.layout = ParametersOnly(3);
    return request;
  }

  absl::StatusOr<const SessionRecord*> JoinAs(const JoinRequest& request) {
    Completions completions;
    auto record = roster.Join(request, ListenerOf(request.worker), Step(0), now, &completions);
    roster.Update(now, &completions);
    completions.Run();
    return record;
  }
  SessionId Join(const std::string& name) { return (*JoinAs(RequestOf(name)))->session; }
  SessionId Observe(const std::string& name) {
    JoinRequest request = RequestOf(name);
    request.role = SessionRole::kObserver;
    return (*JoinAs(request))->session;
  }
  void Leave(SessionId session) { EXPECT_THAT(roster.Leave(session, now), IsOk()); }
  // Meanwhile every session sends heartbeats.
  void Pass(absl::Duration duration) {
    now += duration;
    for (const auto& entry : roster.sessions().records()) {
      roster.sessions().NoteSeen(entry.second.session, now).IgnoreError();
    }
    Update();
  }
  // No session sends heartbeats.
  void PassInSilence(absl::Duration duration) {
    now += duration;
    Update();
  }
  void Update() {
    Completions completions;
    roster.Update(now, &completions);
    completions.Run();
  }
  // The events that CheckFinished() sends, in order.
  std::vector<std::string> CheckFinished(uint64_t step) {
    Completions completions;
    roster.CheckFinished(Step(step), now, &completions);
    completions.Run();
    return std::move(told);
  }
  JobListener ListenerOf(const std::string& name) {
    return [this, name](const JobEvent& event) {
      told.push_back(absl::StrCat(name, " ", Words(event.kind), " ", event.step.value()));
    };
  }
  static absl::string_view Words(JobEvent::Kind kind) {
    switch (kind) {
      case JobEvent::Kind::kTrainingFinished:
        return "finished";
      case JobEvent::Kind::kDraining:
        return "draining";
      case JobEvent::Kind::kEvicted:
        return "evicted";
      case JobEvent::Kind::kPolicyChanged:
        return "policy";
      case JobEvent::Kind::kDeserted:
        break;
    }
    return "deserted";
  }
  uint32_t workers() const { return roster.sessions().census().open(SessionRole::kWorker); }

  absl::Time now = kStart;
  std::vector<std::string> told;
  Roster roster;
};

// ---- The job's model ----

TEST(RosterTest, TheFirstWorkersModelAndOptimizerBecomeTheJobs) {
  RosterWorld world(Options(1));
  EXPECT_EQ(world.roster.model().layout, nullptr);
  JoinRequest request = world.RequestOf("a");
  std::get<SgdOptions>(request.optimizer.options).momentum = 0.5;
  ASSERT_THAT(world.JoinAs(request), IsOk());
  EXPECT_EQ(world.roster.model().layout->ranges(), request.layout.ranges());
  EXPECT_EQ(std::get<SgdOptions>(world.roster.model().optimizer->options).momentum, 0.5);
}

TEST(RosterTest, RefusesAnotherModelAndOpensNoSession) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("b");
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
  EXPECT_EQ(world.roster.sessions().records().size(), 1u);
}

TEST(RosterTest, RefusesAnotherOptimizerAndOpensNoSession) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("b");
  std::get<SgdOptions>(request.optimizer.options).momentum = 0.5;
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kOptimizerMismatch, HasSubstr("momentum")));
  EXPECT_EQ(world.roster.sessions().records().size(), 1u);
}

TEST(RosterTest, ComparesAnObserversModelButNotItsOptimizer) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("o");
  request.role = SessionRole::kObserver;
  std::get<SgdOptions>(request.optimizer.options).momentum = 0.5;
  EXPECT_THAT(world.JoinAs(request), IsOk());
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
}

TEST(RosterTest, RefusesAnObserverBeforeTheFirstWorker) {
  RosterWorld world(Options(1));
  JoinRequest request = world.RequestOf("o");
  request.role = SessionRole::kObserver;
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kNotInitialized, HasSubstr("no worker")));
  EXPECT_EQ(world.roster.model().layout, nullptr);
}

TEST(RosterTest, RefusesAnotherJobsWorkerAndTakesOneOfAnyJob) {
  RosterWorld world(Options(1));
  JoinRequest request = world.RequestOf("a");
  request.job_id = "other";
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kWrongJob, HasSubstr("runs job \"job\", not \"other\"")));
  EXPECT_EQ(world.roster.model().layout, nullptr);
  request.job_id = "";
  EXPECT_THAT(world.JoinAs(request), IsOk());
}

TEST(RosterTest, RefusesAModelThatIsTooLargeBeforeItHasAny) {
  ShardOptions options = Options(1);
  options.max_elements = 3;
  RosterWorld world(options);
  JoinRequest request = world.RequestOf("a");
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kModelTooLarge, HasSubstr("4 elements, more than the 3")));
  EXPECT_EQ(world.roster.model().layout, nullptr);
  request.layout = *Layout::Create(ParametersOnly(1).ranges(), {}, {{"base", {24}, "I8"}});
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kModelTooLarge,
                      HasSubstr("1 elements and 24 bytes of constants, more than the 3 elements")));
  EXPECT_THAT(world.JoinAs(world.RequestOf("a")), IsOk());
}

TEST(RosterTest, RefusesWorkersThatAverageWhereTheServerClipsGradients) {
  ShardOptions clipping = Options(1);
  clipping.guards.clip_norm = 1;
  RosterWorld world(clipping);
  JoinRequest request = world.RequestOf("a");
  request.optimizer.options = AveragingOptions();
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kBadOptimizer, HasSubstr("apply their own optimizers")));
  EXPECT_EQ(world.roster.model().layout, nullptr);
  EXPECT_THAT(world.JoinAs(world.RequestOf("a")), IsOk());
}

TEST(RosterTest, TakesWorkersThatAverageAndWillFollowItsSchedule) {
  ShardOptions scheduled = Options(1);
  scheduled.schedule.warmup_steps = 5;
  RosterWorld world(scheduled);
  JoinRequest request = world.RequestOf("a");
  request.optimizer.options = AveragingOptions();
  EXPECT_THAT(world.JoinAs(request), IsOk());
  EXPECT_TRUE(std::holds_alternative<AveragingOptions>(world.roster.model().optimizer->options));
  EXPECT_THAT(world.JoinAs(world.RequestOf("b")),
              IsError(Reason::kOptimizerMismatch, HasSubstr("sgd, the job's is averaging")));
}

TEST(RosterTest, RefusesWorkersThatStepThemselvesWhereTheirStepsWouldDiffer) {
  const auto refusal = [](const ShardOptions& options, const std::string& pull_encoding) {
    RosterWorld world(options);
    JoinRequest request = world.RequestOf("a");
    request.optimizer.options = MeanGradientOptions();
    request.pull_encoding = pull_encoding;
    const absl::Status joined = world.JoinAs(request).status();
    EXPECT_EQ(world.roster.model().layout != nullptr, joined.ok());
    return joined;
  };
  ShardOptions scheduled = Options(1);
  scheduled.schedule.warmup_steps = 5;
  EXPECT_THAT(refusal(scheduled, ""), IsError(Reason::kBadOptimizer, HasSubstr("a schedule")));
  ShardOptions restoring = Options(1);
  restoring.guards.on_divergence = DivergenceAction::kRestore;
  EXPECT_THAT(refusal(restoring, ""),
              IsError(Reason::kBadOptimizer, HasSubstr("--on-divergence=restore")));
  EXPECT_THAT(refusal(Options(1), "auto:int8"),
              IsError(Reason::kBadOptimizer, HasSubstr("--pull-encoding=auto")));
  EXPECT_THAT(refusal(Options(1), "int8"), IsOk());
}

TEST(RosterTest, WorkersThatStepThemselvesGetTheMeanInOneEncodingAndNobodyObservesThem) {
  RosterWorld world(Options(2));
  JoinRequest request = world.RequestOf("a");
  request.optimizer.options = MeanGradientOptions();
  request.pull_encoding = "int8";
  ASSERT_THAT(world.JoinAs(request), IsOk());
  JoinRequest other = request;
  other.worker = "b";
  other.pull_encoding = "float16";
  EXPECT_THAT(world.JoinAs(other),
              IsError(Reason::kOptimizerMismatch,
                      HasSubstr("the --pull-encoding is \"float16\", the others' is \"int8\"")));
  JoinRequest observer = world.RequestOf("o");
  observer.role = SessionRole::kObserver;
  EXPECT_THAT(world.JoinAs(observer),
              IsError(Reason::kOptimizerMismatch, HasSubstr("mean gradients only")));
  observer.optimizer.options = MeanGradientOptions();  // a worker that awaits the end
  EXPECT_THAT(world.JoinAs(observer), IsOk());
}

TEST(RosterTest, RefusesAGroupOfWhatTheModelLacks) {
  RosterWorld world(Options(1));
  JoinRequest request = world.RequestOf("a");
  request.optimizer.groups = {{{"v"}, SgdOptions()}};
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kBadOptimizer, HasSubstr("\"v\", which is not in the model")));
  EXPECT_EQ(world.roster.model().layout, nullptr);
  request.optimizer.groups = {{{"w"}, SgdOptions()}};
  EXPECT_THAT(world.JoinAs(request), IsOk());
  EXPECT_THAT(world.JoinAs(world.RequestOf("b")),
              IsError(Reason::kOptimizerMismatch, HasSubstr("has 0 groups of parameters")));
}

// ---- The start ----

TEST(RosterTest, StartsWhenTheExpectedWorkersHaveJoined) {
  RosterWorld world(Options(2));
  EXPECT_FALSE(world.roster.started());
  world.Join("a");
  world.Observe("o");
  EXPECT_FALSE(world.roster.started());
  world.Join("b");
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, CountsAWorkerThatJoinsTwiceOnce) {
  RosterWorld world(Options(2));
  world.Join("a");
  world.Join("a");
  EXPECT_FALSE(world.roster.started());
}

TEST(RosterTest, StartsWithThoseThatAreConnected) {
  RosterWorld world(Options(2));
  world.roster.MarkLost(world.Join("a"), world.now);
  world.Join("b");
  EXPECT_FALSE(world.roster.started());
  world.Join("a");
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, CountsAWorkerThatHasLeftUntilAnotherOneTakesItsPlace) {
  for (const bool in_its_place : {false, true}) {
    RosterWorld world(Options(2));
    world.Leave(world.Join("a"));
    EXPECT_EQ(world.roster.Progress().absent, 1u);
    JoinRequest other = world.RequestOf("b");
    if (!in_its_place) other.index = 1;
    ASSERT_THAT(world.JoinAs(other), IsOk());
    EXPECT_EQ(world.roster.Progress().absent, in_its_place ? 1 : 0);
    EXPECT_EQ(world.roster.started(), !in_its_place);
  }
}

TEST(RosterTest, StartsWhenAsManyAsExpectedHaveComeAndGone) {
  RosterWorld world(Options(2));
  world.Leave(world.Join("a"));
  const SessionId b = world.Join("b");
  EXPECT_FALSE(world.roster.started());
  world.Leave(b);
  world.Update();
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("owner finished 0", "owner deserted 0"));
}

TEST(RosterTest, WaitsForTheOthersNoLongerThanTheStartTimeout) {
  RosterWorld world(Options(3, absl::Seconds(30)));
  world.Pass(absl::Hours(1));
  world.Join("a");
  world.Pass(absl::Seconds(20));
  world.Join("b");
  world.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_FALSE(world.roster.started());
  world.Pass(absl::Nanoseconds(1));
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, WaitsForEverWithoutAStartTimeout) {
  RosterWorld world(Options(2));
  world.Join("a");
  world.Pass(absl::Hours(100000));
  EXPECT_FALSE(world.roster.started());
}

TEST(RosterTest, StaysStartedWhoeverGoes) {
  RosterWorld world(Options(1));
  world.Leave(world.Join("a"));
  world.Pass(absl::Hours(1));
  EXPECT_TRUE(world.roster.started());
}

// ---- Those who go ----

TEST(RosterTest, KeepsALostWorkersPlaceUntilItsLeaseEnds) {
  RosterWorld world(Options(1));
  world.roster.MarkLost(world.Join("a"), world.now);
  world.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_EQ(world.roster.sessions().census().open(SessionRole::kWorker), 1u);
  world.Pass(absl::Nanoseconds(1));
  EXPECT_EQ(world.roster.sessions().census().open(SessionRole::kWorker), 0u);
}

TEST(RosterTest, EvictsAPresentWorkerThatIsSilentForItsLease) {
  RosterWorld world(Options(2));
  const SessionId a = world.Join("a");
  world.Join("b");
  world.PassInSilence(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_THAT(world.roster.sessions().NoteSeen(a, world.now), IsOk());
  EXPECT_THAT(world.told, IsEmpty());
  world.PassInSilence(absl::Nanoseconds(1));
  EXPECT_THAT(world.told, ElementsAre("b evicted 0"));
  EXPECT_EQ(world.workers(), 1u);
  world.PassInSilence(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_THAT(world.told, ElementsAre("b evicted 0", "a evicted 0"));
}

TEST(RosterTest, EvictsASilentObserverToo) {
  RosterWorld world(Options(1));
  world.Join("a");
  world.Observe("o");
  world.PassInSilence(absl::Seconds(10));
  EXPECT_THAT(world.told, ElementsAre("a evicted 0", "o evicted 0"));
  EXPECT_EQ(world.roster.sessions().census().open(SessionRole::kObserver), 0u);
}

TEST(RosterTest, AWordFromALostWorkerDoesNotProlongItsLease) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  world.roster.MarkLost(a, world.now);
  world.Pass(absl::Seconds(5));
  EXPECT_THAT(world.roster.sessions().NoteSeen(a, world.now), IsOk());
  world.Pass(absl::Seconds(5));
  EXPECT_EQ(world.workers(), 0u);
  EXPECT_THAT(world.roster.sessions().NoteSeen(a, world.now),
              IsError(Reason::kUnknownSession, HasSubstr("session 1")));
  EXPECT_THAT(world.told, IsEmpty());  // its connection broke
}

TEST(RosterTest, TellsAReplacedSession) {
  RosterWorld world(Options(1));
  const SessionId first = world.Join("a");
  world.Join("a");
  EXPECT_THAT(world.told, ElementsAre("a evicted 0"));
  world.roster.MarkLost(first, world.now);
  world.Join("a");
  EXPECT_THAT(world.told, ElementsAre("a evicted 0", "a evicted 0"));
}

TEST(RosterTest, DoesNotTellASessionThatWasLostOrHadLeft) {
  RosterWorld world(Options(1));
  world.roster.MarkLost(world.Join("a"), world.now);
  world.Leave(world.Join("a"));
  world.Join("a");
  EXPECT_THAT(world.told, IsEmpty());
}

TEST(RosterTest, BansAProcessByTheNameOfItsWorker) {
  RosterWorld world(Options(2));
  world.Join("a");
  world.Join("b");
  Completions completions;
  EXPECT_THAT(world.roster.Ban("a", world.now, &completions), IsOk());
  completions.Run();
  EXPECT_THAT(world.told, ElementsAre("a evicted 0"));
  EXPECT_EQ(world.workers(), 1u);
  EXPECT_THAT(world.JoinAs(world.RequestOf("a")),
              IsError(Reason::kEvicted, HasSubstr("the server's operator")));
  JoinRequest another = world.RequestOf("a");
  another.process_nonce = ProcessNonce(2);
  EXPECT_THAT(world.JoinAs(another), IsOk());
}

TEST(RosterTest, BansNobodyWhoIsNotThere) {
  RosterWorld world(Options(1));
  world.Leave(world.Join("gone"));
  Completions completions;
  EXPECT_THAT(world.roster.Ban("stranger", world.now, &completions),
              IsError(Reason::kNotFound, HasSubstr("no worker \"stranger\"")));
  EXPECT_THAT(world.roster.Ban("gone", world.now, &completions),
              IsError(Reason::kNotFound, HasSubstr("no worker \"gone\"")));
  EXPECT_THAT(world.JoinAs(world.RequestOf("gone")), IsOk());
}

TEST(RosterTest, AnEvictedWorkerMayJoinAgain) {
  RosterWorld world(Options(1));
  world.Join("a");
  world.PassInSilence(absl::Seconds(10));
  EXPECT_EQ(world.workers(), 0u);
  world.Join("a");
  EXPECT_EQ(world.workers(), 1u);
}

// ---- What the policy is told ----

TEST(RosterTest, TellsThePolicyOfAStepsWorkers) {
  RosterWorld world(Options(2));
  SessionTable& sessions = world.roster.sessions();
  sessions.BeginStep(Step(7));
  sessions.Change(**sessions.Find(world.Join("a")), [](SessionRecord& a) { a.clock = 4; });
  EXPECT_FALSE(world.roster.Progress().started);
  EXPECT_EQ(world.roster.Progress().slowest, 0u);  // of who has not joined yet
  EXPECT_EQ(world.roster.Progress().absent, 1u);
  sessions.Change(**sessions.Find(world.Join("b")), [](SessionRecord& b) {
    b.contributed = Step(7);
    b.clock = 3;
  });
  const StepProgress progress = world.roster.Progress();
  EXPECT_TRUE(progress.started);
  EXPECT_EQ(progress.members, 2u);
  EXPECT_EQ(progress.missing, 1u);
  EXPECT_EQ(progress.absent, 0u);
  EXPECT_EQ(progress.slowest, 3u);
}

TEST(RosterTest, BeforeTheStartAnyRankMayStillBeMissing) {
  RosterWorld world(Options(2));
  SessionTable& sessions = world.roster.sessions();
  sessions.Change(**sessions.Find(world.Join("a")),
                  [](SessionRecord& a) { a.contributed = Step(0); });
  EXPECT_EQ(world.roster.FirstMissing(), Rank());
  world.Join("b");
  EXPECT_EQ(world.roster.FirstMissing(), Rank(1, "b"));
}

TEST(RosterTest, IgnoresTheLossOfASessionThatWasReplaced) {
  RosterWorld world(Options(1));
  const SessionId first = world.Join("a");
  world.Join("a");
  world.roster.MarkLost(first, world.now);
  world.roster.MarkLost(SessionId(99), world.now);
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.roster.sessions().census().open(SessionRole::kWorker), 1u);
}

TEST(RosterTest, LetsASessionLeaveOnce) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  EXPECT_THAT(world.roster.Leave(a, world.now), IsOk());
  EXPECT_THAT(world.roster.Leave(a, world.now),
              IsError(Reason::kUnknownSession, HasSubstr("session 1")));
}

TEST(RosterTest, EvictsAWorkerThatFailsAtOnceAndExpectsItForALease) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  EXPECT_THAT(world.roster.Leave(a, world.now, "no more data"), IsOk());
  const SessionRecord record = world.roster.sessions().records().at("a");
  EXPECT_EQ(record.presence, Presence::kEvicted);
  EXPECT_EQ(record.DescribeFailure(), "\"a\" (process 0): no more data");
  world.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
  world.Pass(absl::Nanoseconds(1));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, AnotherProcessTakesTheNameOfOneThatHasFailed) {
  RosterWorld world(Options(1));
  EXPECT_THAT(world.roster.Leave(world.Join("a"), world.now, "no more data"), IsOk());
  JoinRequest again = world.RequestOf("a");
  again.process_nonce = ProcessNonce(2);
  const auto record = world.JoinAs(again);
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ((*record)->failure, "");
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
}

// ---- Names ----

TEST(RosterTest, RefusesTheNameOfAnotherProcessThatRuns) {
  for (const SessionRole role : {SessionRole::kWorker, SessionRole::kObserver}) {
    RosterWorld world(Options(1));
    JoinRequest first = world.RequestOf("a\n");
    first.host = "node1";
    first.pid = 12;
    ASSERT_THAT(world.JoinAs(first), IsOk());
    JoinRequest second = first;
    second.process_nonce = ProcessNonce(2);
    second.role = role;
    EXPECT_THAT(world.JoinAs(second),
                IsError(Reason::kNameTaken,
                        HasSubstr("is that of \"a\\n\" (process 12 on node1), which takes part")));
    EXPECT_THAT(world.JoinAs(first), IsOk());  // it joins again
  }
}

TEST(RosterTest, GivesTheNameOfAProcessWhoseConnectionIsGoneOrThatIsSilentForHalfALease) {
  for (const bool breaks : {true, false}) {
    RosterWorld world(Options(1));
    const SessionId first = world.Join("a");
    JoinRequest second = world.RequestOf("a");
    second.process_nonce = ProcessNonce(2);
    if (breaks) world.roster.MarkLost(first, world.now);
    if (!breaks) world.PassInSilence(absl::Seconds(5) - absl::Nanoseconds(1));
    const auto early = world.JoinAs(second);
    EXPECT_EQ(early.ok(), breaks);
    if (!breaks) {
      EXPECT_EQ(early.status().GetPayload("sluice/retry_after"), absl::Cord("1ns"));
    }
    world.PassInSilence(absl::Nanoseconds(1));
    EXPECT_THAT(world.JoinAs(second), IsOk());
    // The first one wakes up.
    EXPECT_THAT(world.JoinAs(world.RequestOf("a")),
                IsError(Reason::kNameTaken, HasSubstr("\"a\"")));
  }
}

// ---- The end ----

TEST(RosterTest, AnnouncesTheEndOnceWhenEveryWorkerHasGone) {
  RosterWorld world(Options(2));
  const SessionId a = world.Join("a");
  const SessionId b = world.Join("b");
  world.Observe("o");
  world.Leave(a);
  EXPECT_THAT(world.CheckFinished(8), IsEmpty());
  EXPECT_FALSE(world.roster.finished());
  world.Leave(b);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("o finished 9", "owner finished 9"));
  EXPECT_TRUE(world.roster.finished());
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
}

TEST(RosterTest, TellsTheOwnerAloneOnceTheLastObserverHasLeft) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  const SessionId o = world.Observe("o");
  const SessionId p = world.Observe("p");
  world.Leave(o);
  world.Leave(a);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("p finished 9", "owner finished 9"));
  world.Leave(p);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner deserted 9"));
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
}

TEST(RosterTest, IsDesertedAtItsEndWithoutObservers) {
  RosterWorld world(Options(1));
  world.Leave(world.Join("a"));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, IsDesertedByAnEvictedObserverALeaseLater) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  world.roster.MarkLost(world.Observe("o"), world.now);
  world.Leave(a);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9"));
  world.Pass(absl::Seconds(10));
  world.Pass(absl::Seconds(9));
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner deserted 9"));
}

TEST(RosterTest, IsNotFinishedWhileALostOrEvictedWorkerMayReturn) {
  RosterWorld world(Options(1));
  world.roster.MarkLost(world.Join("a"), world.now);
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.roster.sessions().census().open(SessionRole::kWorker), 0u);
  world.Pass(absl::Seconds(9));
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, IsFinishedAtOnceWhenTheOperatorEvictsTheLastWorker) {
  RosterWorld world(Options(1));
  world.Join("a");
  Completions completions;
  ASSERT_THAT(world.roster.Ban("a", world.now, &completions), IsOk());
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, AnEvictedWorkerThatCameBackAndLeftIsNotAwaited) {
  RosterWorld world(Options(1));
  world.Join("a");
  world.Pass(absl::Seconds(10));
  world.Leave(world.Join("a"));
  EXPECT_THAT(world.CheckFinished(9),
              ElementsAre("a evicted 0", "owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, IsNotFinishedBeforeItsStart) {
  RosterWorld world(Options(2, absl::Seconds(30)));
  EXPECT_THAT(world.CheckFinished(0), IsEmpty());
  world.Leave(world.Join("a"));
  EXPECT_THAT(world.CheckFinished(0), IsEmpty());
  world.Pass(absl::Seconds(30));
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("owner finished 0", "owner deserted 0"));
}

TEST(RosterTest, AWorkerThatJoinsAfterTheEndPutsItOff) {
  RosterWorld world(Options(1));
  world.Leave(world.Join("a"));
  EXPECT_THAT(world.CheckFinished(5), ElementsAre("owner finished 5", "owner deserted 5"));
  const SessionId b = world.Join("b");
  EXPECT_THAT(world.CheckFinished(5), IsEmpty());
  EXPECT_FALSE(world.roster.finished());
  world.Leave(b);
  EXPECT_THAT(world.CheckFinished(6), ElementsAre("owner finished 6", "owner deserted 6"));
}

TEST(RosterTest, TellsNothingToThoseWhoLeftOrWereLost) {
  RosterWorld world(Options(1));
  world.Leave(world.Join("a"));
  world.roster.MarkLost(world.Join("b"), world.now);
  world.Join("c");
  Completions completions;
  world.roster.Announce({JobEvent::Kind::kDraining, Step(4), {}}, &completions);
  EXPECT_THAT(world.told, IsEmpty());  // only once the completions run
  completions.Run();
  EXPECT_THAT(world.told, ElementsAre("c draining 4", "owner draining 4"));
}

// A checkpoint of a job of two workers, with open sessions of those.
ShardCheckpoint CheckpointOf(uint64_t step, const std::vector<std::string>& workers) {
  ShardCheckpoint checkpoint;
  checkpoint.step = Step(step);
  checkpoint.layout = std::make_shared<const Layout>(ParametersOnly(3));
  for (const std::string& name : workers) {
    SessionRecord record;
    record.worker = name;
    record.process_nonce = ProcessNonce(1);
    checkpoint.workers.push_back(record);
  }
  return checkpoint;
}

// A checkpoint of the end of training.
ShardCheckpoint EndOf(uint64_t step, const std::vector<std::string>& observers) {
  ShardCheckpoint checkpoint = CheckpointOf(step, {});
  checkpoint.ended = checkpoint.finished = true;
  checkpoint.observers = observers;
  return checkpoint;
}

TEST(RosterTest, AfterTheEndWaitsForTheObserversOfBefore) {
  RosterWorld world(Options(2));
  world.roster.Restore(EndOf(7, {"a", "b"}), world.now);
  world.PassInSilence(absl::Seconds(60));
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  EXPECT_TRUE(world.roster.finished());
  world.Leave(world.Observe("a"));
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  world.Leave(world.Observe("b"));
  EXPECT_THAT(world.CheckFinished(7), ElementsAre("owner deserted 7"));
  EXPECT_TRUE(world.roster.ended_before());
}

TEST(RosterTest, AfterTheEndDoesNotWaitForObserversForEver) {
  RosterWorld world(Options(2));
  world.roster.Restore(EndOf(7, {"a"}), world.now);
  world.PassInSilence(Roster::kObserversReturn - absl::Seconds(1));
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  world.PassInSilence(absl::Seconds(1));
  EXPECT_THAT(world.CheckFinished(7), ElementsAre("owner deserted 7"));
}

TEST(RosterTest, AfterTheEndANewLaunchGoesOn) {
  RosterWorld world(Options(2));
  world.roster.Restore(EndOf(7, {}), world.now);
  world.PassInSilence(absl::Hours(1));
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  EXPECT_FALSE(world.roster.finished());
  world.Join("a");
  EXPECT_FALSE(world.roster.started());
  world.Join("b");
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, AfterTheEndTheSameLaunchIsOver) {
  ShardOptions options = Options(2);
  options.launched = Launched::kAgain;
  RosterWorld world(options);
  world.roster.Restore(EndOf(7, {}), world.now);
  EXPECT_THAT(world.CheckFinished(7), ElementsAre("owner deserted 7"));
}

TEST(RosterTest, AfterTheEndWorkersThatWereLaunchedAreWaitedForAlone) {
  ShardOptions options = Options(2);
  options.launched = Launched::kAnew;
  RosterWorld world(options);
  world.roster.Restore(EndOf(7, {"a"}), world.now);
  world.PassInSilence(Roster::kObserversReturn);
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  EXPECT_FALSE(world.roster.finished());
}

TEST(RosterTest, AWorkerThatJoinsAfterTheEndTakesItBack) {
  RosterWorld world(Options(1));
  world.roster.Restore(EndOf(7, {"a"}), world.now);
  const SessionId worker = world.Join("b");
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
  EXPECT_FALSE(world.roster.finished());
  world.Leave(worker);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
}

TEST(RosterTest, StepsAfterTheEndTakeItBack) {
  RosterWorld world(Options(1));
  world.roster.Restore(EndOf(7, {"a"}), world.now);
  world.roster.ResumeTraining();
  EXPECT_FALSE(world.roster.finished());
}

TEST(RosterTest, IsFinishedIfAllThatHaveComeAreLostAndTheWaitForOthersHasNoLimit) {
  RosterWorld world(Options(3));
  world.Join("a");
  world.Join("b");
  world.PassInSilence(absl::Seconds(10));  // their leases
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("a evicted 0", "b evicted 0"));
  world.PassInSilence(absl::Seconds(10));
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("owner finished 0", "owner deserted 0"));
}

TEST(RosterTest, IsNotFinishedBeforeItsStartIfSomeHaveLeftInGoodOrder) {
  RosterWorld world(Options(3));
  world.Join("a");
  world.Leave(world.Join("b"));
  world.PassInSilence(absl::Hours(1));
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("a evicted 0"));
  EXPECT_FALSE(world.roster.finished());
}

TEST(RosterTest, AServerThatResumesIsFinishedIfAllThatHaveComeHaveLeft) {
  for (const uint64_t lost : {0, 5}) {
    RosterWorld world(Options(2));
    world.roster.Restore(CheckpointOf(lost > 0 ? 0 : 7, {}), world.now);
    if (lost > 0) world.roster.NoteLostSteps();
    world.Leave(world.Join("b"));
    world.PassInSilence(absl::Seconds(9));
    EXPECT_THAT(world.CheckFinished(7), IsEmpty());
    world.PassInSilence(absl::Seconds(1));
    EXPECT_THAT(world.CheckFinished(7), ElementsAre("owner finished 7", "owner deserted 7"));
  }
}

// An incarnation that follows another in the same process.
ShardOptions GoingOn() {
  ShardOptions options = Options(2);
  options.goes_on = true;
  return options;
}

TEST(RosterTest, GoesOnAtOnceWithTheWorkersOfACheckpointThatKnowsThemAll) {
  RosterWorld world(GoingOn());
  world.roster.Restore(CheckpointOf(0, {"a", "b"}), world.now);
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, GoesOnAtOnceFromALaterStepWhoeverHasGoneSince) {
  RosterWorld world(GoingOn());
  world.roster.Restore(CheckpointOf(7, {"a"}), world.now);
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, GoesOnFromTheFirstStepWhenThoseWhoJoinedAfterItsCheckpointAreBack) {
  RosterWorld world(GoingOn());
  world.roster.Restore(CheckpointOf(0, {"a"}), world.now);
  world.Join("a");
  world.Pass(absl::Seconds(9));
  EXPECT_FALSE(world.roster.started());
  world.Join("b");
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, WaitsForThemNoLongerThanALease) {
  RosterWorld world(GoingOn());
  world.roster.Restore(CheckpointOf(0, {"a"}), world.now);
  world.Join("a");
  world.Pass(absl::Seconds(10));
  EXPECT_TRUE(world.roster.started());
}

TEST(RosterTest, IsFinishedIfItGoesOnAndNobodyComesBack) {
  RosterWorld world(GoingOn());
  world.roster.Restore(CheckpointOf(0, {"a"}), world.now);
  world.PassInSilence(absl::Seconds(10));  // the lease of a
  EXPECT_THAT(world.CheckFinished(0), IsEmpty());
  world.PassInSilence(absl::Seconds(10));  // a may still come back
  EXPECT_THAT(world.CheckFinished(0), ElementsAre("owner finished 0", "owner deserted 0"));
}

TEST(RosterTest, AServerStartedAnewAtTheFirstStepCountsThoseThatAreThere) {
  RosterWorld world(Options(2));
  world.roster.Restore(CheckpointOf(0, {"a", "b"}), world.now);
  world.Join("c");
  EXPECT_FALSE(world.roster.started());
  world.Join("a");
  EXPECT_TRUE(world.roster.started());
}

// Three workers were launched before. Those with the indices 0 and 2 would both have the first half
// of the data.
TEST(RosterTest, FewerWorkersOfANewLaunchHaveAllPartsOfTheData) {
  RosterWorld world(Options(2));
  ShardCheckpoint checkpoint = CheckpointOf(7, {"a", "b", "c"});
  for (uint32_t i = 0; i < 3; ++i) checkpoint.workers[i].index = i;
  checkpoint.launched_workers = 3;
  world.roster.Restore(checkpoint, world.now);
  world.roster.BeginLaunch();
  const auto join_anew = [&world](const std::string& name) {
    JoinRequest request = world.RequestOf(name);
    request.process_nonce = ProcessNonce(2);
    return (*world.JoinAs(request))->index;
  };
  EXPECT_EQ(join_anew("c"), 2u);
  EXPECT_EQ(join_anew("a"), 3u);  // b may still come back to 1
  EXPECT_EQ(join_anew("c"), 2u);
}

TEST(RosterTest, AServerStartedAnewWaitsForALaunchIfNobodyComesBack) {
  RosterWorld world(Options(2));
  world.roster.Restore(CheckpointOf(7, {"a"}), world.now);
  EXPECT_TRUE(world.roster.started());
  world.PassInSilence(absl::Seconds(20));
  EXPECT_FALSE(world.roster.started());
  EXPECT_THAT(world.CheckFinished(7), IsEmpty());
}

TEST(RosterTest, NeedsNoOwner) {
  Roster roster(Options(1), nullptr);
  Completions completions;
  roster.Announce({JobEvent::Kind::kDraining, Step(4), {}}, &completions);
  completions.Run();
  EXPECT_FALSE(roster.finished());
}

}  // namespace
}  // namespace sluice

#include "server/roster.h"

#include <string>
#include <utility>
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

// A roster, the time, and what was told to whom.
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

  absl::StatusOr<SessionRecord*> JoinAs(const JoinRequest& request) {
    auto record = roster.Join(request, ListenerOf(request.worker), Step(0), now);
    roster.Update(now);
    return record;
  }
  SessionId Join(const std::string& name) { return (*JoinAs(RequestOf(name)))->session; }
  SessionId Observe(const std::string& name) {
    JoinRequest request = RequestOf(name);
    request.role = SessionRole::kObserver;
    return (*JoinAs(request))->session;
  }
  void Leave(SessionId session) { EXPECT_THAT(roster.Leave(session), IsOk()); }
  void Pass(absl::Duration duration) {
    now += duration;
    roster.Update(now);
  }
  // What is told when the step is final, in order.
  std::vector<std::string> CheckFinished(uint64_t step) {
    Completions completions;
    roster.CheckFinished(Step(step), &completions);
    completions.Run();
    return std::move(told);
  }
  JobListener ListenerOf(const std::string& name) {
    return [this, name](const JobEvent& event) {
      const bool finished = event.kind == JobEvent::Kind::kTrainingFinished;
      const bool draining = event.kind == JobEvent::Kind::kDraining;
      told.push_back(absl::StrCat(name,
                                  finished   ? " finished "
                                  : draining ? " draining "
                                             : " deserted ",
                                  event.step.value()));
    };
  }

  absl::Time now = kStart;
  std::vector<std::string> told;
  Roster roster;
};

// ---- The job's model ----

TEST(RosterTest, TheFirstWorkersModelAndOptimizerBecomeTheJobs) {
  RosterWorld world(Options(1));
  EXPECT_EQ(world.roster.layout(), nullptr);
  JoinRequest request = world.RequestOf("a");
  request.optimizer.momentum = 0.5;
  ASSERT_THAT(world.JoinAs(request), IsOk());
  EXPECT_EQ(world.roster.layout()->ranges(), request.layout.ranges());
  EXPECT_EQ(world.roster.optimizer().momentum, 0.5);
}

TEST(RosterTest, RefusesAnotherModelAndOpensNoSession) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("b");
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
  EXPECT_EQ(world.roster.sessions().Records().size(), 1u);
}

TEST(RosterTest, RefusesAnotherOptimizerAndOpensNoSession) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("b");
  request.optimizer.momentum = 0.5;
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kOptimizerMismatch, HasSubstr("momentum")));
  EXPECT_EQ(world.roster.sessions().Records().size(), 1u);
}

TEST(RosterTest, ComparesAnObserversModelButNotItsOptimizer) {
  RosterWorld world(Options(1));
  world.Join("a");
  JoinRequest request = world.RequestOf("o");
  request.role = SessionRole::kObserver;
  request.optimizer.momentum = 0.5;
  EXPECT_THAT(world.JoinAs(request), IsOk());
  request.layout = ParametersOnly(4);
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kLayoutMismatch, HasSubstr("[4]")));
}

TEST(RosterTest, RefusesAnObserverBeforeTheFirstWorker) {
  RosterWorld world(Options(1));
  JoinRequest request = world.RequestOf("o");
  request.role = SessionRole::kObserver;
  EXPECT_THAT(world.JoinAs(request), IsError(Reason::kNotInitialized, HasSubstr("no worker")));
  EXPECT_EQ(world.roster.layout(), nullptr);
}

TEST(RosterTest, RefusesAnotherJobsWorkerAndTakesOneOfAnyJob) {
  RosterWorld world(Options(1));
  JoinRequest request = world.RequestOf("a");
  request.job_id = "other";
  EXPECT_THAT(world.JoinAs(request),
              IsError(Reason::kWrongJob, HasSubstr("runs job \"job\", not \"other\"")));
  EXPECT_EQ(world.roster.layout(), nullptr);
  request.job_id = "";
  EXPECT_THAT(world.JoinAs(request), IsOk());
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

TEST(RosterTest, CountsAWorkerThatHasGoneSince) {
  RosterWorld world(Options(2));
  world.Leave(world.Join("a"));
  world.Join("b");
  EXPECT_TRUE(world.roster.started());
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
  world.roster.Lose(world.Join("a"), world.now);
  world.Pass(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_EQ(world.roster.sessions().CountAlive(SessionRole::kWorker), 1u);
  world.Pass(absl::Nanoseconds(1));
  EXPECT_EQ(world.roster.sessions().CountAlive(SessionRole::kWorker), 0u);
}

TEST(RosterTest, IgnoresTheLossOfASessionThatWasReplaced) {
  RosterWorld world(Options(1));
  const SessionId first = world.Join("a");
  world.Join("a");
  world.roster.Lose(first, world.now);
  world.roster.Lose(SessionId(99), world.now);
  world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.roster.sessions().CountAlive(SessionRole::kWorker), 1u);
}

TEST(RosterTest, LetsASessionLeaveOnce) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  EXPECT_THAT(world.roster.Leave(a), IsOk());
  EXPECT_THAT(world.roster.Leave(a), IsError(Reason::kUnknownSession, HasSubstr("session 1")));
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

TEST(RosterTest, IsDesertedByALostObserverWhenItsLeaseEnds) {
  RosterWorld world(Options(1));
  const SessionId a = world.Join("a");
  world.roster.Lose(world.Observe("o"), world.now);
  world.Leave(a);
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9"));
  world.Pass(absl::Seconds(10));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner deserted 9"));
}

TEST(RosterTest, IsNotFinishedWhileALostWorkerMayReturn) {
  RosterWorld world(Options(1));
  world.roster.Lose(world.Join("a"), world.now);
  EXPECT_THAT(world.CheckFinished(9), IsEmpty());
  world.Pass(absl::Seconds(10));
  EXPECT_THAT(world.CheckFinished(9), ElementsAre("owner finished 9", "owner deserted 9"));
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
  world.roster.Lose(world.Join("b"), world.now);
  world.Join("c");
  Completions completions;
  world.roster.Announce({JobEvent::Kind::kDraining, Step(4)}, &completions);
  EXPECT_THAT(world.told, IsEmpty());  // only once the completions run
  completions.Run();
  EXPECT_THAT(world.told, ElementsAre("c draining 4", "owner draining 4"));
}

TEST(RosterTest, NeedsNoOwner) {
  Roster roster(Options(1), nullptr);
  Completions completions;
  roster.Announce({JobEvent::Kind::kDraining, Step(4)}, &completions);
  completions.Run();
  EXPECT_FALSE(roster.finished());
}

}  // namespace
}  // namespace sluice

#include "server/admission/gate.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Consistency Sync() { return Consistency(); }

Consistency Bounded(uint32_t max_staleness) {
  Consistency consistency;
  consistency.mode = ConsistencyMode::kBounded;
  consistency.max_staleness = max_staleness;
  return consistency;
}

Consistency Async() {
  Consistency consistency;
  consistency.mode = ConsistencyMode::kAsync;
  return consistency;
}

Consistency Ssp(uint32_t slack) {
  Consistency consistency;
  consistency.mode = ConsistencyMode::kSsp;
  consistency.slack = slack;
  return consistency;
}

// A gate of incarnation 1 with a worker "w" and an observer; the server's step is `step`.
class GateWorld {
 public:
  explicit GateWorld(const Consistency& consistency)
      : policy(consistency), gate(policy, incarnations, sessions) {
    Join("w", 1);
    JoinRequest request;
    request.worker = "o";
    request.role = SessionRole::kObserver;
    observer = (*sessions.Open(request, Step(0), kNow))->session;
  }

  // Lets "w" join. Its session is the one that pushes.
  void Join(const std::string& name, uint64_t nonce) {
    JoinRequest request;
    request.worker = name;
    request.process_nonce = ProcessNonce(nonce);
    session = (*sessions.Open(request, Step(0), kNow))->session;
  }

  PushHeader Header(uint64_t sequence, uint64_t gradient_step) const {
    PushHeader header;
    header.session = session;
    header.sequence = Sequence(sequence);
    header.step = Step(gradient_step);
    header.incarnation = Incarnation(1);
    return header;
  }

  Gate::Verdict Open(const absl::StatusOr<PushHeader>& header) {
    return gate.Open(header, Progress(), kNow);
  }
  Gate::Verdict Admit(const PushHeader& header) { return gate.Admit(header, Progress(), kNow); }
  absl::StatusOr<PushOutcome> Count(const PushHeader& header) {
    return gate.Count(header, Disposition::kAccepted, Step(step), Step(step), kNow);
  }
  // Plays a push that counts, from its header to Count().
  absl::StatusOr<PushOutcome> Pass(const PushHeader& header) {
    const Gate::Verdict opened = Open(header);
    if (!opened.ok() || opened->has_value()) return absl::FailedPreconditionError("refused");
    const Gate::Verdict admitted = Admit(header);
    if (!admitted.ok() || admitted->has_value()) return absl::FailedPreconditionError("refused");
    return Count(header);
  }
  StepProgress Progress() const {
    StepProgress progress;
    progress.step = Step(step);
    progress.started = true;
    progress.slowest = slowest;
    return progress;
  }
  const SessionRecord& record() const { return **sessions.Find(session); }
  template <typename Field, typename Value>
  void Set(Field SessionRecord::*field, const Value& value) {
    sessions.Change(record(), [&](SessionRecord& changed) { changed.*field = value; });
  }
  std::string Counters() const {
    EXPECT_TRUE(gate.counters().Balanced());
    return Columns(gate.counters());
  }

  StalenessPolicy policy;
  IncarnationHistory incarnations{Incarnation(1)};
  SessionTable sessions{16};
  Gate gate;
  SessionId session;
  SessionId observer;
  uint64_t step = 0;
  uint64_t slowest = 0;
};

// Matchers for the verdict "may continue" and for the answers in a verdict.
MATCHER(GoesOn, "lets the push go on") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return arg.ok() && !arg->has_value();
}

absl::StatusOr<PushOutcome> AnswerOf(const Gate::Verdict& verdict) {
  if (!verdict.ok()) return verdict.status();
  if (!verdict->has_value()) return absl::UnknownError("it may go on");
  return **verdict;
}

// "w" has that clock, and another worker the clock 5. Returns the clock of "w" after a push.
uint64_t ClockAfterPush(uint64_t clock, bool excused) {
  GateWorld world(Ssp(9));
  const SessionId w = world.session;
  world.Join("x", 2);
  world.Set(&SessionRecord::clock, 5);
  world.session = w;
  world.Set(&SessionRecord::clock, clock);
  world.Set(&SessionRecord::excused, excused);
  EXPECT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  EXPECT_FALSE(world.record().excused);
  return world.record().clock;
}

TEST(GateTest, AnExcusedWorkerThatPushesGoesOnBesideTheSlowestOfTheOthers) {
  EXPECT_EQ(ClockAfterPush(2, true), 6u);
  EXPECT_EQ(ClockAfterPush(7, true), 8u);
}

TEST(GateTest, AWorkerThatWasNotExcusedKeepsItsClock) { EXPECT_EQ(ClockAfterPush(2, false), 3u); }

TEST(GateTest, LetsAFreshGradientThroughTwice) {
  GateWorld world(Sync());
  EXPECT_THAT(world.Open(world.Header(1, 0)), GoesOn());
  EXPECT_EQ(world.Counters(), "1 received: 1 in progress");
  EXPECT_THAT(world.Admit(world.Header(1, 0)), GoesOn());
  EXPECT_THAT(world.Count(world.Header(1, 0)), Accepted(0));
  EXPECT_EQ(world.Counters(), "1 received: 1 accepted");
}

TEST(GateTest, CountsAPushThatCompletedAStepWithTheStepItWasJudgedAt) {
  GateWorld world(Bounded(5));
  world.step = 7;
  ASSERT_THAT(world.Open(world.Header(1, 4)), GoesOn());
  ASSERT_THAT(world.Admit(world.Header(1, 4)), GoesOn());
  const absl::StatusOr<PushOutcome> outcome =
      world.gate.Count(world.Header(1, 4), Disposition::kApplied, Step(7), Step(8), kNow);
  EXPECT_THAT(outcome, Applied(8, 3));
}

TEST(GateTest, DropsAGradientOlderThanTheBoundAtItsHeader) {
  GateWorld world(Bounded(2));
  world.step = 5;
  EXPECT_THAT(world.Open(world.Header(1, 3)), GoesOn());
  EXPECT_THAT(AnswerOf(world.Open(world.Header(2, 2))), Stale(5, 3));
  world.gate.Abandon(Abandoned::kAborted);
  EXPECT_EQ(world.Counters(), "2 received: 1 stale, 1 aborted");
}

TEST(GateTest, DropsAGradientThatGrewTooOldUnderWay) {
  GateWorld world(Bounded(2));
  ASSERT_THAT(world.Open(world.Header(1, 0)), GoesOn());
  world.step = 3;
  EXPECT_THAT(AnswerOf(world.Admit(world.Header(1, 0))), Stale(3, 3));
  EXPECT_EQ(world.Counters(), "1 received: 1 stale");
}

TEST(GateTest, RefusesAGradientFromAFutureStep) {
  GateWorld world(Async());
  world.step = 5;
  EXPECT_THAT(world.Open(world.Header(1, 6)),
              IsError(Reason::kFutureStep, HasSubstr("of step 6, the server is at step 5")));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

TEST(GateTest, TakesAGradientOfAnotherIncarnationForStaleWhateverItsStep) {
  GateWorld world(Async());
  world.step = 5;
  PushHeader header = world.Header(1, 5);
  for (const auto& [step, staleness] : {std::pair(3, 2), std::pair(5, 0), std::pair(9, 0)}) {
    header.step = Step(step);
    header.incarnation = Incarnation(2);
    EXPECT_THAT(AnswerOf(world.Open(header)), Stale(5, staleness));
    header.sequence = header.sequence.Next();
  }
  EXPECT_EQ(world.Counters(), "3 received: 3 stale");
}

TEST(GateTest, RefusesASecondContributionToAStep) {
  GateWorld world(Sync());
  world.step = 4;
  world.Set(&SessionRecord::contributed, Step(4));
  EXPECT_THAT(
      world.Open(world.Header(1, 4)),
      IsError(Reason::kAlreadyContributed, HasSubstr("w has contributed to step 4; pull step 5")));
  world.step = 5;
  EXPECT_THAT(world.Open(world.Header(1, 5)), GoesOn());
  world.gate.Abandon(Abandoned::kAborted);
  EXPECT_EQ(world.Counters(), "2 received: 1 rejected, 1 aborted");
}

TEST(GateTest, TakesAnyNumberOfContributionsInAsync) {
  GateWorld world(Async());
  world.Set(&SessionRecord::contributed, Step(0));
  EXPECT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  EXPECT_THAT(world.Pass(world.Header(2, 0)), Accepted(0));
}

// ---- At most once ----

TEST(GateTest, RepeatsTheFirstAnswerHoweverFarTheStepHasGone) {
  GateWorld world(Bounded(2));
  world.step = 3;
  ASSERT_THAT(world.Pass(world.Header(1, 2)), Accepted(3, 1));
  ASSERT_THAT(AnswerOf(world.Open(world.Header(2, 0))), Stale(3, 3));
  world.step = 90;
  EXPECT_THAT(AnswerOf(world.Open(world.Header(1, 2))), Repeated(Disposition::kAccepted, 3, 1));
  EXPECT_THAT(AnswerOf(world.Open(world.Header(2, 0))), Repeated(Disposition::kStaleDropped, 3, 3));
  EXPECT_EQ(world.Counters(), "4 received: 1 accepted, 1 stale, 2 duplicate");
}

TEST(GateTest, RepeatsTheAnswerOfAPushThatWasCountedWhileThisOneArrived) {
  GateWorld world(Bounded(2));
  ASSERT_THAT(world.Open(world.Header(1, 0)), GoesOn());
  ASSERT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  EXPECT_THAT(AnswerOf(world.Admit(world.Header(1, 0))), Repeated(Disposition::kAccepted, 0));
  EXPECT_EQ(world.Counters(), "2 received: 1 accepted, 1 duplicate");
}

TEST(GateTest, ADuplicateOfAnotherIncarnationsPushKeepsItsAnswer) {
  GateWorld world(Bounded(2));
  PushHeader header = world.Header(1, 0);
  header.incarnation = Incarnation(9);
  ASSERT_THAT(AnswerOf(world.Open(header)), Stale(0, 0));
  EXPECT_THAT(AnswerOf(world.Open(header)), Repeated(Disposition::kStaleDropped, 0));
}

TEST(GateTest, RefusesASequenceWhoseAnswerIsNotKept) {
  GateWorld world(Bounded(2));
  for (uint64_t sequence = 2; sequence <= 18; ++sequence) {
    ASSERT_THAT(world.Pass(world.Header(sequence, 0)), Accepted(0));
  }
  for (const uint64_t sequence : {0, 1, 2}) {
    EXPECT_THAT(world.Open(world.Header(sequence, 0)),
                IsError(Reason::kSequenceTooOld, HasSubstr("comes after push 18")));
  }
  EXPECT_THAT(AnswerOf(world.Open(world.Header(3, 0))), Repeated(Disposition::kAccepted, 0));
  EXPECT_EQ(world.Counters(), "21 received: 17 accepted, 1 duplicate, 3 rejected");
}

TEST(GateTest, RefusesASequenceBeforeTheFirst) {
  GateWorld world(Bounded(2));
  EXPECT_THAT(world.Open(world.Header(0, 0)),
              IsError(Reason::kSequenceTooOld, HasSubstr("push 0")));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

TEST(GateTest, ARefusedPushUsesUpNoSequence) {
  GateWorld world(Sync());
  ASSERT_FALSE(world.Open(world.Header(1, 1)).ok());
  EXPECT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
}

TEST(GateTest, RepeatsTheAnswerToAProcessThatJoinedAgain) {
  GateWorld world(Bounded(2));
  ASSERT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  world.Join("w", 1);
  EXPECT_THAT(AnswerOf(world.Open(world.Header(1, 0))), Repeated(Disposition::kAccepted, 0));
}

TEST(GateTest, AnotherProcessCountsItsPushesFromOne) {
  GateWorld world(Bounded(2));
  ASSERT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  world.Join("w", 2);
  EXPECT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
}

// ---- What was skipped ----

TEST(GateTest, EntersASkippedPushApartAndRemembersIt) {
  GateWorld world(Sync());
  const PushHeader header = world.Header(1, 0);
  ASSERT_THAT(world.Open(header), GoesOn());
  ASSERT_THAT(world.Admit(header), GoesOn());
  const absl::StatusOr<PushOutcome> outcome =
      world.gate.Count(header, Disposition::kSkipped, Step(0), Step(0), kNow);
  EXPECT_THAT(outcome, Skipped(0));
  EXPECT_THAT(AnswerOf(world.Open(header)), Repeated(Disposition::kSkipped, 0));
  EXPECT_EQ(world.Counters(), "2 received: 1 skipped, 1 duplicate");
  EXPECT_EQ(world.record().skipped, 1u);
  EXPECT_EQ(world.record().accepted, 0u);
}

TEST(GateTest, MeasuresTheStalenessOfWhatCountedOnly) {
  GateWorld world(Bounded(2));
  world.step = 5;
  ASSERT_THAT(world.Pass(world.Header(1, 5)), Accepted(5, 0));
  ASSERT_THAT(world.Pass(world.Header(2, 3)), Accepted(5, 2));
  ASSERT_THAT(AnswerOf(world.Open(world.Header(3, 0))), Stale(5, 5));
  const PushHeader skipped = world.Header(4, 4);
  ASSERT_THAT(world.Open(skipped), GoesOn());
  world.gate.Count(skipped, Disposition::kSkipped, Step(5), Step(5), kNow);
  EXPECT_EQ(world.gate.staleness().counts()[0], 1u);
  EXPECT_EQ(world.gate.staleness().counts()[1], 0u);
  EXPECT_EQ(world.gate.staleness().counts()[2], 1u);
  EXPECT_EQ(world.gate.staleness().max(), 2u);
}

// ---- Those who joined mid-step, and those ahead ----

TEST(GateTest, DropsAGradientOfAStepBeforeItsWorkersFirst) {
  GateWorld world(Sync());
  world.step = 3;
  world.Set(&SessionRecord::active_from, Step(4));
  EXPECT_THAT(AnswerOf(world.Open(world.Header(1, 3))), Stale(3, 0));
  world.step = 4;
  EXPECT_THAT(world.Pass(world.Header(2, 4)), Accepted(4));
}

TEST(GateTest, TakesAGradientFromBeforeItsWorkerJoinedAgainWhereStaleOnesCount) {
  for (const Consistency& consistency : {Bounded(5), Async()}) {
    GateWorld world(consistency);
    world.step = 4;
    world.Set(&SessionRecord::active_from, Step(4));
    EXPECT_THAT(world.Pass(world.Header(1, 3)), Accepted(4, 1));
  }
}

TEST(GateTest, RefusesAWorkerThatRanAheadUntilTheSlowestHasCaughtUp) {
  GateWorld world(Ssp(1));
  ASSERT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  ASSERT_THAT(world.Pass(world.Header(2, 0)), Accepted(0));
  EXPECT_THAT(world.Open(world.Header(3, 0)),
              IsError(Reason::kAheadOfOthers, HasSubstr("w has made 2 pushes, the slowest")));
  EXPECT_THAT(AnswerOf(world.Open(world.Header(2, 0))), Repeated(Disposition::kAccepted, 0));
  world.slowest = 1;
  EXPECT_THAT(world.Pass(world.Header(3, 0)), Accepted(0));
  EXPECT_EQ(world.Counters(), "5 received: 3 accepted, 1 duplicate, 1 rejected");
}

TEST(GateTest, AnExcusedWorkerThatPushesGoesOnBesideTheSlowest) {
  GateWorld world(Ssp(1));
  const SessionId laggard = world.session;
  world.Join("other", 1);
  world.Set(&SessionRecord::clock, 7);
  world.session = laggard;
  world.Set(&SessionRecord::clock, 0);
  world.Set(&SessionRecord::excused, true);
  EXPECT_THAT(world.Pass(world.Header(1, 0)), Accepted(0));
  EXPECT_FALSE(world.record().excused);
  EXPECT_EQ(world.record().clock, 8u);
}

// ---- Sessions ----

TEST(GateTest, AbortsThePushesOfAReplacedSession) {
  GateWorld world(Bounded(2));
  const PushHeader open = world.Header(1, 0);
  const PushHeader late = world.Header(2, 0);
  ASSERT_THAT(world.Open(open), GoesOn());
  world.Join("w", 1);
  EXPECT_THAT(world.Admit(open), IsError(Reason::kUnknownSession, HasSubstr("join anew")));
  EXPECT_THAT(world.Open(late), IsError(Reason::kUnknownSession, HasSubstr("join anew")));
  EXPECT_EQ(world.Counters(), "2 received: 2 aborted");
}

TEST(GateTest, RefusesAnObserversPush) {
  GateWorld world(Bounded(2));
  PushHeader header = world.Header(1, 0);
  header.session = world.observer;
  EXPECT_THAT(world.Open(header), IsError(Reason::kNotAWorker, HasSubstr("may only pull")));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

TEST(GateTest, EntersAMalformedHeaderAsRejected) {
  GateWorld world(Bounded(2));
  EXPECT_THAT(world.Open(MakeError(Reason::kBadArgument, "samples is 0")),
              IsError(Reason::kBadArgument, HasSubstr("samples is 0")));
  EXPECT_EQ(world.Counters(), "1 received: 1 rejected");
}

TEST(GateTest, EntersAnAbandonedPushAsItWasAbandoned) {
  GateWorld world(Bounded(2));
  for (const Abandoned why : {Abandoned::kRejected, Abandoned::kAborted, Abandoned::kAborted}) {
    ASSERT_THAT(world.Open(world.Header(1, 0)), GoesOn());
    world.gate.Abandon(why);
  }
  EXPECT_EQ(world.Counters(), "3 received: 1 rejected, 2 aborted");
}

}  // namespace
}  // namespace sluice

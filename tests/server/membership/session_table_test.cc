#include "server/membership/session_table.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/membership/session_queries.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1000);

// A worker whose process has the nonce `nonce`.
JoinRequest Worker(const std::string& name, uint64_t nonce = 1) {
  JoinRequest request;
  request.worker = name;
  request.process_nonce = ProcessNonce(nonce);
  request.host = "node";
  request.pid = 7;
  return request;
}

JoinRequest Observer(const std::string& name) {
  JoinRequest request = Worker(name);
  request.role = SessionRole::kObserver;
  return request;
}

JoinRequest Asking(JoinRequest request, uint32_t index) {
  request.index = index;
  return request;
}

class SessionTableTest : public ::testing::Test {
 protected:
  const SessionRecord& Open(const JoinRequest& request, uint64_t active_from = 0) {
    return **table_.Open(request, Step(active_from), kNow);
  }

  template <typename Field, typename Value>
  void Set(const SessionRecord& record, Field SessionRecord::*field, const Value& value) {
    table_.Change(record, [&](SessionRecord& changed) { changed.*field = value; });
  }

  void MarkLost(const SessionRecord& record, absl::Time at) {
    Set(record, &SessionRecord::presence, Presence::kLost);
    Set(record, &SessionRecord::last_seen, at);
  }

  // The table when that step is the current one.
  const SessionTable& At(uint64_t step) {
    table_.BeginStep(Step(step));
    return table_;
  }

  void Evict(SessionId session, absl::Time last_seen) {
    const SessionRecord& record = **table_.Find(session);
    Set(record, &SessionRecord::last_seen, last_seen);
    Set(record, &SessionRecord::presence, Presence::kEvicted);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : table_.records()) names.push_back(entry.first);
    return names;
  }

  SessionTable table_{4};
};

TEST_F(SessionTableTest, OpensSessionsNumberedFromOne) {
  const SessionRecord a = Open(Worker("a", 11), 3);
  EXPECT_EQ(a.session, SessionId(1));
  EXPECT_EQ(a.worker, "a");
  EXPECT_EQ(a.role, SessionRole::kWorker);
  EXPECT_EQ(a.process_nonce, ProcessNonce(11));
  EXPECT_EQ(a.host, "node");
  EXPECT_EQ(a.pid, 7u);
  EXPECT_EQ(a.presence, Presence::kPresent);
  EXPECT_EQ(a.active_from, Step(3));
  EXPECT_EQ(a.last_sequence, Sequence(0));
  EXPECT_EQ(Open(Worker("b")).session, SessionId(2));
}

TEST_F(SessionTableTest, FindsWhoASessionSpeaksFor) {
  const SessionId a = Open(Worker("a")).session;
  const SessionId o = Open(Observer("o")).session;
  EXPECT_EQ((*table_.Find(a))->worker, "a");
  EXPECT_EQ((*table_.FindWorker(a))->worker, "a");
  EXPECT_EQ((*table_.Find(o))->worker, "o");
}

TEST_F(SessionTableTest, KnowsNoSessionThatItDidNotOpen) {
  Open(Worker("a"));
  EXPECT_THAT(table_.Find(SessionId(0)), IsError(Reason::kUnknownSession, HasSubstr("session 0")));
  EXPECT_THAT(table_.Find(SessionId(2)), IsError(Reason::kUnknownSession, HasSubstr("session 2")));
}

TEST_F(SessionTableTest, TakesNoObserverForAWorker) {
  EXPECT_THAT(table_.FindWorker(Open(Observer("o")).session),
              IsError(Reason::kNotAWorker, HasSubstr("o joined as an observer")));
}

TEST_F(SessionTableTest, ASecondSessionOfAWorkerReplacesTheFirst) {
  const SessionId first = Open(Worker("a")).session;
  const SessionId second = Open(Worker("a")).session;
  EXPECT_THAT(table_.Find(first), IsError(Reason::kUnknownSession, HasSubstr("join anew")));
  EXPECT_EQ((*table_.Find(second))->worker, "a");
  EXPECT_EQ(table_.census().known(SessionRole::kWorker), 1u);
}

TEST_F(SessionTableTest, ALostSessionStillSpeaksAndOneThatEndedDoesNot) {
  const SessionRecord& a = Open(Worker("a"));
  Set(a, &SessionRecord::presence, Presence::kLost);
  EXPECT_THAT(table_.Find(a.session), IsOk());
  for (const Presence gone : {Presence::kLeft, Presence::kEvicted}) {
    Set(a, &SessionRecord::presence, gone);
    EXPECT_THAT(table_.Find(a.session), IsError(Reason::kUnknownSession, HasSubstr("it ended")));
  }
}

// What a process did before its session broke.
void GiveHistory(SessionRecord& record) {
  PushHeader header;
  header.sequence = Sequence(5);
  record.Remember(header, StoredAnswer(), kNow);
  record.contributed = Step(2);
}

TEST_F(SessionTableTest, AProcessThatReturnsGoesOnWithItsSequence) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  const SessionRecord& again = Open(Worker("a", 11));
  EXPECT_EQ(again.last_sequence, Sequence(5));
  EXPECT_EQ(again.answers.count(Sequence(5)), 1u);
  EXPECT_EQ(again.contributed, Step(2));
  EXPECT_EQ(again.accepted, 1u);
}

TEST_F(SessionTableTest, AnotherProcessOfTheSameNameStartsAnewButHasContributed) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  const SessionRecord& other = Open(Worker("a", 12));
  EXPECT_EQ(other.last_sequence, Sequence(0));
  EXPECT_TRUE(other.answers.empty());
  EXPECT_EQ(other.contributed, Step(2));
  EXPECT_EQ(other.accepted, 0u);
}

TEST_F(SessionTableTest, KnowsWhatEarlierProcessesOfTheNameHavePushed) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  EXPECT_EQ(Open(Worker("a", 11)).pushes_before, 0u);
  MarkLost(Open(Worker("a", 12)), kNow);
  table_.Change(Open(Worker("a", 12)), GiveHistory);
  EXPECT_EQ(Open(Worker("a", 12)).pushes_before, 1u);
  Evict(Open(Worker("a", 12)).session, kNow);
  EXPECT_EQ(Open(Worker("a", 13)).pushes_before, 2u);
}

TEST_F(SessionTableTest, WhoComesAfterAProcessThatLeftBeginsAnew) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  Set(Open(Worker("a", 11)), &SessionRecord::presence, Presence::kLeft);
  EXPECT_EQ(Open(Worker("a", 12)).pushes_before, 0u);
}

// So a worker that continues from there pushes it again.
TEST_F(SessionTableTest, WhatAnEarlierProcessGaveToAStepIsNotDoneBeforeIt) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  const SessionRecord other = Open(Worker("a", 12));
  EXPECT_EQ(other.Before(Step(3)).pushes_before, 1u);
  EXPECT_EQ(other.Before(Step(2)).pushes_before, 0u);
}

TEST_F(SessionTableTest, AProcessTakesThePlaceOfOneThatIsMissingFromTheStep) {
  const SessionRecord& a = Open(Worker("a", 11), 3);
  EXPECT_FALSE(TakesOver(Worker("b", 12), table_.records(), Step(3)));
  EXPECT_FALSE(TakesOver(Worker("a", 12), table_.records(), Step(2)));
  EXPECT_FALSE(TakesOver(Observer("a"), table_.records(), Step(3)));
  EXPECT_TRUE(TakesOver(Worker("a", 12), table_.records(), Step(3)));
  MarkLost(a, kNow);
  EXPECT_TRUE(TakesOver(Worker("a", 12), table_.records(), Step(3)));
  Set(a, &SessionRecord::contributed, Step(3));
  EXPECT_FALSE(TakesOver(Worker("a", 12), table_.records(), Step(3)));
  Set(a, &SessionRecord::contributed, absl::nullopt);
  Set(a, &SessionRecord::presence, Presence::kEvicted);
  EXPECT_FALSE(TakesOver(Worker("a", 12), table_.records(), Step(3)));
}

TEST_F(SessionTableTest, AProcessThatReturnsInTimeKeepsItsPlaceInTheStep) {
  for (const Presence presence : {Presence::kPresent, Presence::kLost}) {
    Set(Open(Worker("a", 11), 3), &SessionRecord::presence, presence);
    EXPECT_EQ(Open(Worker("a", 11), 8).active_from, Step(3));
  }
}

TEST_F(SessionTableTest, AProcessThatReturnsTooLateTakesPartFromTheStepItIsGiven) {
  for (const Presence presence : {Presence::kLeft, Presence::kEvicted}) {
    Set(Open(Worker("a", 11), 3), &SessionRecord::presence, presence);
    EXPECT_EQ(Open(Worker("a", 11), 8).active_from, Step(8));
  }
}

TEST_F(SessionTableTest, AnotherProcessTakesPartFromTheStepItIsGiven) {
  Open(Worker("a", 11), 3);
  EXPECT_EQ(Open(Worker("a", 12), 8).active_from, Step(8));
}

TEST_F(SessionTableTest, GivesTheLowestIndexThatNoWorkerHas) {
  EXPECT_EQ(Open(Worker("a")).index, 0u);
  EXPECT_EQ(Open(Worker("b")).index, 1u);
  EXPECT_EQ(Open(Worker("c")).index, 2u);
  Set(**table_.Find(SessionId(2)), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_EQ(Open(Worker("d")).index, 1u);
}

TEST_F(SessionTableTest, GivesTheIndexThatTheLauncherChose) {
  EXPECT_EQ(Open(Asking(Worker("a"), 1)).index, 1u);
  EXPECT_EQ(Open(Worker("b")).index, 0u);
  EXPECT_EQ(Open(Worker("c")).index, 2u);
}

TEST_F(SessionTableTest, AProcessThatReturnsKeepsItsIndex) {
  Open(Worker("a", 11));
  Open(Worker("b", 12));
  Set(**table_.Find(SessionId(1)), &SessionRecord::presence, Presence::kLeft);
  Set(**table_.Find(SessionId(2)), &SessionRecord::presence, Presence::kLost);
  EXPECT_EQ(Open(Worker("b", 12)).index, 1u);
}

TEST_F(SessionTableTest, AProcessThatReturnsKeepsItsIndexThoughItAsksForAnother) {
  Open(Asking(Worker("a", 11), 3));
  EXPECT_EQ(Open(Asking(Worker("a", 11), 1)).index, 3u);
}

TEST_F(SessionTableTest, AProcessThatReturnsKeepsItsIndexThoughItAsksForThatOfAnother) {
  Open(Asking(Worker("a", 11), 3));
  Open(Asking(Worker("b", 12), 1));
  EXPECT_EQ(Open(Asking(Worker("a", 11), 1)).index, 3u);
}

TEST_F(SessionTableTest, AnotherProcessTakesOverTheIndexOfAnOpenSession) {
  Open(Worker("a", 11));
  Open(Worker("b", 12));
  Set(**table_.Find(SessionId(1)), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_EQ(Open(Worker("b", 13)).index, 1u);
  EXPECT_EQ(Open(Asking(Worker("b", 14), 0)).index, 0u);
}

TEST_F(SessionTableTest, AnotherProcessTakesOverThePlaceInTheStepWithItsIndexOnly) {
  Open(Worker("a", 11));
  EXPECT_TRUE(TakesOver(Worker("a", 12), table_.records(), Step(0)));
  EXPECT_TRUE(TakesOver(Asking(Worker("a", 12), 0), table_.records(), Step(0)));
  EXPECT_FALSE(TakesOver(Asking(Worker("a", 12), 1), table_.records(), Step(0)));
}

TEST_F(SessionTableTest, AProcessThatReturnsTooLateFindsItsIndexTaken) {
  Set(Open(Worker("a", 11)), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_EQ(Open(Worker("b", 12)).index, 0u);
  EXPECT_EQ(Open(Worker("a", 11)).index, 1u);
}

TEST_F(SessionTableTest, AnObserverHasIndexZeroAndTakesNone) {
  EXPECT_EQ(Open(Worker("a")).index, 0u);
  EXPECT_EQ(Open(Observer("o")).index, 0u);
  EXPECT_EQ(Open(Asking(Observer("p"), 5)).index, 0u);
  EXPECT_EQ(Open(Worker("b")).index, 1u);
}

class RestoredTableTest : public SessionTableTest {
 protected:
  RestoredTableTest() { table_.Restore({}, false, Step(5), kNow); }

  void OpenThatPushed(const JoinRequest& request) {
    Set(Open(request), &SessionRecord::last_sequence, Sequence(1));
  }

  SessionRecord restored_;
};

TEST_F(RestoredTableTest, DoesNotRememberAProcessWhoseNameAnotherTook) {
  OpenThatPushed(Worker("a", 11));
  OpenThatPushed(Worker("a", 12));
  Open(Worker("a", 13));
  EXPECT_FALSE(table_.Remembers(Worker("a", 11)));
  EXPECT_FALSE(table_.Remembers(Worker("a", 12)));
  EXPECT_TRUE(table_.Remembers(Worker("a", 13)));
  EXPECT_TRUE(table_.Remembers(Worker("a", 14)));
  EXPECT_TRUE(table_.Remembers(Worker("b", 11)));
}

class JournaledAnswersTest : public RestoredTableTest {
 protected:
  // "a" has an answer to its push 1 at step 5.
  JournaledAnswersTest() {
    OpenThatPushed(Worker("a", 11));
    restored_ = *table_.FindAlive("a");
    restored_.answers[Sequence(1)] = {};
    table_.Restore({restored_}, false, Step(5), kNow);
  }

  // A journaled step brings `later` with the answer to its latest push. Returns how many answers
  // "a" has then.
  size_t AnswersAfter(SessionRecord later, Sequence latest) {
    later.answers = {{latest, {}}};
    later.last_sequence = latest;
    table_.Restore({later}, false, Step(6), kNow);
    return table_.FindAlive("a")->answers.size();
  }
};

TEST_F(JournaledAnswersTest, AddToThoseOfAProcess) {
  EXPECT_EQ(AnswersAfter(restored_, Sequence(2)), 2u);
}

TEST_F(JournaledAnswersTest, ReplaceThoseOfAProcessWhoseNameAnotherTookMeanwhile) {
  SessionRecord later = restored_;  // it came back, and counts its pushes anew
  later.replaced = {ProcessNonce(11), ProcessNonce(12)};
  EXPECT_EQ(AnswersAfter(later, Sequence(3)), 1u);
}

TEST_F(RestoredTableTest, AJournaledStepDropsTheAnswersOfAProcessThatCountsItsPushesAnew) {
  OpenThatPushed(Worker("a", 11));
  restored_ = *table_.FindAlive("a");
  restored_.answers = {{Sequence(5), {}}};
  restored_.last_sequence = Sequence(5);
  table_.Restore({restored_}, false, Step(5), kNow);
  SessionRecord later = restored_;
  later.answers = {{Sequence(2), {}}};
  later.last_sequence = Sequence(2);
  table_.Restore({later}, false, Step(6), kNow);
  EXPECT_EQ(table_.FindAlive("a")->answers.count(Sequence(5)), 0u);
}

TEST_F(RestoredTableTest, RemembersAProcessThatHadNothingToLoseWhenAnotherTookItsName) {
  Open(Worker("a", 11));
  Open(Worker("a", 12));
  EXPECT_TRUE(table_.Remembers(Worker("a", 11)));
}

TEST_F(RestoredTableTest, RemembersNobodyNewOnceItHasForgottenWhoWasReplaced) {
  OpenThatPushed(Worker("a", 11));
  Set(Open(Worker("a", 12)), &SessionRecord::presence, Presence::kLeft);
  for (const char* name : {"b", "c", "d"}) Open(Worker(name));
  EXPECT_TRUE(table_.Remembers(Worker("e")));
  Open(Worker("e"));  // in the place of "a"
  EXPECT_FALSE(table_.Remembers(Worker("a", 11)));
  EXPECT_TRUE(table_.forgot_workers());
}

TEST_F(RestoredTableTest, RemembersNobodyNewAfterTooManyProcessesOfOneName) {
  for (uint64_t nonce = 1; nonce <= SessionRecord::kStoredProcesses + 2; ++nonce) {
    EXPECT_FALSE(table_.forgot_workers());
    OpenThatPushed(Worker("a", nonce));
  }
  EXPECT_TRUE(table_.forgot_workers());
  EXPECT_FALSE(table_.Remembers(Worker("a", 1)));
}

TEST_F(SessionTableTest, RefusesMoreThanItsLimit) {
  for (const char* name : {"a", "b", "c"}) Open(Worker(name));
  Open(Observer("o"));
  EXPECT_THAT(table_.Open(Worker("e"), Step(0), kNow),
              IsError(Reason::kTooManyWorkers, HasSubstr("has 4 workers, its limit")));
  EXPECT_EQ(table_.records().size(), 4u);
}

TEST_F(SessionTableTest, ReplacesASessionAtItsLimit) {
  for (const char* name : {"a", "b", "c", "d"}) Open(Worker(name));
  EXPECT_THAT(table_.Open(Worker("b"), Step(0), kNow), IsOk());
}

TEST_F(SessionTableTest, ForgetsWhoHasGoneToMakeRoom) {
  for (const char* name : {"a", "b", "c", "d"}) Open(Worker(name));
  const SessionId c = SessionId(3);
  MarkLost(**table_.Find(SessionId(2)), kNow);
  Set(**table_.Find(c), &SessionRecord::presence, Presence::kLeft);
  Open(Worker("e"));
  EXPECT_THAT(table_.Find(c), IsError(Reason::kUnknownSession, HasSubstr("session 3")));
  EXPECT_THAT(table_.Open(Worker("f"), Step(0), kNow),
              IsError(Reason::kTooManyWorkers, HasSubstr("4")));
}

TEST_F(SessionTableTest, ForgetsOfThoseWhoHaveGoneFirstWhoLeftThenWhoWasEvictedLongest) {
  for (const char* name : {"a", "b", "c", "d"}) Open(Worker(name));
  Evict(SessionId(1), kNow + absl::Seconds(2));
  Evict(SessionId(2), kNow + absl::Seconds(1));
  Set(**table_.Find(SessionId(4)), &SessionRecord::presence, Presence::kLeft);
  Open(Worker("e"));
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c", "e"));
  Open(Worker("f"));
  EXPECT_THAT(Names(), ElementsAre("a", "c", "e", "f"));
  Open(Worker("g"));
  EXPECT_THAT(Names(), ElementsAre("c", "e", "f", "g"));
  EXPECT_THAT(table_.Open(Worker("h"), Step(0), kNow),
              IsError(Reason::kTooManyWorkers, HasSubstr("--max-workers")));
}

TEST_F(SessionTableTest, RemembersAProcessUntilItIsForgottenOrAnotherTakesItsName) {
  EXPECT_FALSE(table_.Remembers(Worker("a", 11)));
  Set(Open(Worker("a", 11)), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_TRUE(table_.Remembers(Worker("a", 11)));
  EXPECT_FALSE(table_.Remembers(Worker("a", 12)));
  for (const char* name : {"b", "c", "d"}) Open(Worker(name));
  EXPECT_TRUE(table_.Remembers(Worker("a", 11)));
  Open(Worker("e"));
  EXPECT_FALSE(table_.Remembers(Worker("a", 11)));
  Open(Worker("b", 2));
  EXPECT_FALSE(table_.Remembers(Worker("b", 1)));
}

// ---- Indices that are asked for ----

TEST_F(SessionTableTest, RefusesAnIndexThatAnotherOpenWorkerHas) {
  Open(Asking(Worker("a"), 2));
  EXPECT_THAT(
      table_.Open(Asking(Worker("b"), 2), Step(0), kNow),
      IsError(Reason::kBadArgument, HasSubstr("field index is 2, which is the index of a")));
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(Open(Worker("b")).index, 0u);
  EXPECT_THAT(table_.Open(Asking(Worker("c"), 0), Step(0), kNow),
              IsError(Reason::kBadArgument, HasSubstr("which is the index of b")));
}

TEST_F(SessionTableTest, GivesAnIndexToTheSameNameAgainAndToOthersWhenItIsFree) {
  Open(Asking(Worker("a", 11), 2));
  EXPECT_EQ(Open(Asking(Worker("a", 11), 2)).index, 2u);
  EXPECT_EQ(Open(Asking(Worker("a", 12), 2)).index, 2u);
  Set(Open(Worker("a", 12)), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_EQ(Open(Asking(Worker("b"), 2)).index, 2u);
}

TEST_F(SessionTableTest, RefusesAnIndexBeyondTheMostWorkers) {
  EXPECT_EQ(Open(Asking(Worker("a"), 3)).index, 3u);
  for (const uint32_t index : {4u, 4294967295u}) {
    EXPECT_THAT(
        table_.Open(Asking(Worker("b"), index), Step(0), kNow),
        IsError(Reason::kBadArgument, HasSubstr("expected less than 4, the limit of workers")));
  }
  EXPECT_THAT(Names(), ElementsAre("a"));
}

// A session of another incarnation must not be valid in this one.
TEST(SessionNumbersTest, FollowTheBaseOfTheServersLife) {
  SessionTable table(4, SessionId(1000));
  EXPECT_EQ((*table.Open(Worker("a"), Step(0), kNow))->session, SessionId(1001));
  EXPECT_EQ((*table.Open(Worker("b"), Step(0), kNow))->session, SessionId(1002));
  EXPECT_THAT(table.Find(SessionId(1)), IsError(Reason::kUnknownSession, HasSubstr("session 1 ")));
}

// ---- Those who are silent, and those who were removed ----

TEST_F(SessionTableTest, IsSilentWhoWasSeenAtTheDeadlineOrBefore) {
  MarkLost(Open(Worker("a lost")), kNow - absl::Seconds(1));
  const SessionId lost = SessionId(1);
  Open(Worker("b silent"));
  Set(Open(Observer("c silent")), &SessionRecord::last_seen, kNow);
  Set(Open(Worker("d heard")), &SessionRecord::last_seen, kNow + absl::Nanoseconds(1));
  EXPECT_THAT(SilentSince(table_.records(), kNow), ElementsAre(lost, SessionId(2), SessionId(3)));
  EXPECT_THAT(SilentSince(table_.records(), kNow - absl::Nanoseconds(1)), ElementsAre(lost));
}

TEST_F(SessionTableTest, IsNotSilentWhoHasGone) {
  Set(Open(Worker("a")), &SessionRecord::presence, Presence::kLeft);
  Set(Open(Worker("b")), &SessionRecord::presence, Presence::kEvicted);
  EXPECT_THAT(SilentSince(table_.records(), kNow), IsEmpty());
}

TEST_F(SessionTableTest, ASessionIsSeenWhenItIsOpened) {
  EXPECT_EQ(Open(Worker("a")).last_seen, kNow);
  EXPECT_EQ((*table_.Open(Worker("a"), Step(0), kNow + absl::Seconds(3)))->last_seen,
            kNow + absl::Seconds(3));
}

TEST_F(SessionTableTest, RefusesAProcessThatTheOperatorRemoved) {
  const SessionRecord& a = Open(Worker("a", 11));
  Set(a, &SessionRecord::banned, true);
  Set(a, &SessionRecord::presence, Presence::kEvicted);
  EXPECT_THAT(table_.Open(Worker("a", 11), Step(0), kNow),
              IsError(Reason::kEvicted, HasSubstr("a was evicted by the server's operator")));
}

TEST_F(SessionTableTest, TakesAnotherProcessOfTheNameThatTheOperatorRemoved) {
  const SessionRecord& a = Open(Worker("a", 11));
  Set(a, &SessionRecord::banned, true);
  Set(a, &SessionRecord::presence, Presence::kEvicted);
  EXPECT_FALSE(Open(Worker("a", 12)).banned);
  EXPECT_THAT(table_.Open(Worker("a", 12), Step(0), kNow), IsOk());
}

TEST_F(SessionTableTest, FindsThoseAliveByName) {
  const SessionRecord& a = Open(Worker("a"));
  EXPECT_EQ(table_.FindAlive("a"), &a);
  EXPECT_EQ(table_.FindAlive("b"), nullptr);
  Set(a, &SessionRecord::presence, Presence::kLost);
  EXPECT_EQ(table_.FindAlive("a"), &a);
  Set(a, &SessionRecord::presence, Presence::kLeft);
  EXPECT_EQ(table_.FindAlive("a"), nullptr);
}

// ---- Clocks ----

TEST_F(SessionTableTest, AmongExcusedWorkersNobodyWaitsForAnother) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  Set(Open(Worker("b")), &SessionRecord::clock, 3);
  Set(**table_.Find(SessionId(1)), &SessionRecord::excused, true);
  Set(**table_.Find(SessionId(2)), &SessionRecord::excused, true);
  EXPECT_EQ(table_.census().slowest_clock(), 5u);
}

TEST_F(SessionTableTest, TheSlowestClockIsThatOfAWorkerAliveAndNotExcused) {
  EXPECT_EQ(table_.census().slowest_clock(), 0u);
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  Set(Open(Worker("b")), &SessionRecord::clock, 3);
  Open(Observer("o"));
  EXPECT_EQ(table_.census().slowest_clock(), 3u);
  const SessionRecord& b = **table_.Find(SessionId(2));
  Set(b, &SessionRecord::excused, true);
  EXPECT_EQ(table_.census().slowest_clock(), 5u);
  Set(b, &SessionRecord::excused, false);
  Set(b, &SessionRecord::presence, Presence::kLost);
  EXPECT_EQ(table_.census().slowest_clock(), 3u);
  Set(b, &SessionRecord::presence, Presence::kEvicted);
  EXPECT_EQ(table_.census().slowest_clock(), 5u);
}

TEST_F(SessionTableTest, WhoeverJoinsLateBeginsBesideTheSlowest) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  EXPECT_EQ(Open(Worker("b", 11)).clock, 5u);
  Set(Open(Worker("b", 11)), &SessionRecord::clock, 9);
  EXPECT_EQ(Open(Worker("b", 12)).clock, 5u);  // another process
}

TEST_F(SessionTableTest, AProcessThatReturnsInTimeKeepsItsClock) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  const SessionRecord& b = Open(Worker("b", 11));
  Set(b, &SessionRecord::clock, 2);
  Set(b, &SessionRecord::presence, Presence::kLost);
  EXPECT_EQ(Open(Worker("b", 11)).clock, 2u);
}

TEST_F(SessionTableTest, AProcessThatReturnsTooLateCatchesUpAndLosesNothing) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  const SessionRecord& b = Open(Worker("b", 11));
  for (const auto& [before, after] : {std::pair(2, 5), std::pair(8, 8)}) {
    Set(b, &SessionRecord::clock, before);
    Set(b, &SessionRecord::presence, Presence::kEvicted);
    EXPECT_EQ(Open(Worker("b", 11)).clock, static_cast<uint64_t>(after));
  }
}

TEST_F(SessionTableTest, WhoeverReturnsIsExcusedNoMore) {
  Set(Open(Worker("a", 11)), &SessionRecord::excused, true);
  EXPECT_FALSE(Open(Worker("a", 11)).excused);
}

TEST_F(SessionTableTest, ChangesAllRecords) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  Set(Open(Worker("b")), &SessionRecord::clock, 7);
  table_.ChangeAll([](SessionRecord& record) { record.clock = 0; });
  for (const auto& entry : table_.records()) EXPECT_EQ(entry.second.clock, 0u);
}

TEST_F(SessionTableTest, CountsByRoleAndPresence) {
  Open(Worker("a"));
  Set(Open(Worker("b")), &SessionRecord::presence, Presence::kLost);
  Set(Open(Worker("c")), &SessionRecord::presence, Presence::kLeft);
  Open(Observer("o"));
  EXPECT_EQ(table_.census().open(SessionRole::kWorker), 2u);
  EXPECT_EQ(table_.census().known(SessionRole::kWorker), 3u);
  EXPECT_EQ(table_.census().workers().open, 2u);
  EXPECT_EQ(table_.census().open(SessionRole::kObserver), 1u);
  EXPECT_EQ(table_.census().known(SessionRole::kObserver), 1u);
}

TEST_F(SessionTableTest, CountsTheMembersOfAStepAndThoseMissingFromIt) {
  Open(Worker("a"), 2);
  Set(Open(Worker("b"), 2), &SessionRecord::contributed, Step(2));
  Open(Worker("c"), 3);
  Open(Observer("o"), 2);
  EXPECT_EQ(At(1).census().members(), 0u);
  EXPECT_EQ(At(2).census().members(), 2u);
  EXPECT_EQ(At(3).census().members(), 3u);
  EXPECT_EQ(At(2).census().missing(), 1u);
  EXPECT_EQ(At(3).census().missing(), 3u);
}

TEST_F(SessionTableTest, MissesALostWorkerAndNoneThatHasGone) {
  Set(Open(Worker("a")), &SessionRecord::presence, Presence::kLost);
  Set(Open(Worker("b")), &SessionRecord::presence, Presence::kEvicted);
  Set(Open(Worker("c")), &SessionRecord::presence, Presence::kLeft);
  EXPECT_EQ(At(0).census().members(), 1u);
  EXPECT_EQ(At(0).census().missing(), 1u);
}

TEST_F(SessionTableTest, AStepIsHeldUpByThoseMissingFromIt) {
  for (const char* name : {"c", "a", "b"}) Open(Worker(name));
  Open(Worker("d"), 1);
  EXPECT_THAT(HoldersOf(Step(0), table_.records(), absl::nullopt),
              ElementsAre(SessionId(2), SessionId(3), SessionId(1)));
  Set(**table_.Find(SessionId(2)), &SessionRecord::contributed, Step(0));
  EXPECT_THAT(HoldersOf(Step(0), table_.records(), absl::nullopt),
              ElementsAre(SessionId(3), SessionId(1)));
}

TEST_F(SessionTableTest, ByTheClockWorkersAreHeldUpByTheSlowest) {
  Set(Open(Worker("a")), &SessionRecord::clock, 5);
  Set(Open(Worker("b")), &SessionRecord::clock, 3);
  Set(Open(Worker("c")), &SessionRecord::clock, 3);
  Open(Observer("o"));
  EXPECT_THAT(HoldersOf(Step(0), table_.records(), 3), ElementsAre(SessionId(2), SessionId(3)));
  Set(**table_.Find(SessionId(2)), &SessionRecord::excused, true);
  EXPECT_THAT(HoldersOf(Step(0), table_.records(), 3), ElementsAre(SessionId(3)));
  EXPECT_THAT(HoldersOf(Step(0), table_.records(), 0), IsEmpty());  // somebody who has not joined
}

TEST_F(SessionTableTest, NamesContributorsUpToALimitThoseGoneToo) {
  for (const char* name : {"c", "a", "b"}) {
    Set(Open(Worker(name)), &SessionRecord::contributed, Step(4));
  }
  Set(**table_.Find(SessionId(1)), &SessionRecord::presence, Presence::kLeft);
  EXPECT_THAT(ContributorsTo(Step(4), table_.records(), 9), ElementsAre("a", "b", "c"));
  EXPECT_THAT(ContributorsTo(Step(4), table_.records(), 2), ElementsAre("a", "b"));
  EXPECT_THAT(ContributorsTo(Step(5), table_.records(), 9), IsEmpty());
}

TEST_F(SessionTableTest, AStepsPartsNameTheWorkerThatTookAContributorsName) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  Open(Worker("a", 12));
  const std::vector<SessionRecord> parts = PartsOfStep(At(2).census());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].process_nonce, ProcessNonce(12));
  EXPECT_TRUE(parts[0].HasReplaced(ProcessNonce(11)));
  EXPECT_TRUE(parts[0].alive());
}

TEST_F(SessionTableTest, AStepsPartsNameAnObserverThatTookAContributorsNameAsAWorkerThatIsGone) {
  table_.Change(Open(Worker("a", 11)), GiveHistory);
  JoinRequest observer = Observer("a");
  observer.process_nonce = ProcessNonce(12);
  Open(observer);
  const std::vector<SessionRecord> parts = PartsOfStep(At(2).census());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].process_nonce, ProcessNonce(12));
  EXPECT_TRUE(parts[0].HasReplaced(ProcessNonce(11)));
  EXPECT_EQ(parts[0].role, SessionRole::kWorker);
  EXPECT_FALSE(parts[0].alive());
}

TEST_F(SessionTableTest, FindsTheLowestRankThatIsMissing) {
  EXPECT_EQ(At(0).census().first_missing(), absl::nullopt);
  Open(Asking(Worker("c"), 2));
  Open(Asking(Worker("b"), 1));
  Open(Asking(Worker("a"), 3));
  Open(Asking(Worker("d"), 0), 1);
  EXPECT_EQ(At(0).census().first_missing(), Rank(1, "b"));
  Set(**table_.Find(SessionId(2)), &SessionRecord::contributed, Step(0));
  EXPECT_EQ(At(0).census().first_missing(), Rank(2, "c"));
  EXPECT_EQ(At(1).census().first_missing(), Rank(0, "d"));
}

// ---- What a record remembers ----

PushHeader Header(uint64_t sequence) {
  PushHeader header;
  header.sequence = Sequence(sequence);
  header.step = Step(sequence * 10);
  return header;
}

TEST(SessionRecordTest, KeepsTheAnswersOfItsLatestSixteenPushes) {
  SessionRecord record;
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    record.Remember(Header(sequence), StoredAnswer(), kNow);
  }
  EXPECT_EQ(record.answers.size(), 16u);
  EXPECT_EQ(record.answers.begin()->first, Sequence(5));
  EXPECT_EQ(record.last_sequence, Sequence(20));
}

TEST(SessionRecordTest, ALateAnswerDoesNotTakeTheSequenceBack) {
  SessionRecord record;
  record.Remember(Header(7), StoredAnswer(), kNow);
  record.Remember(Header(6), StoredAnswer(), kNow);
  EXPECT_EQ(record.last_sequence, Sequence(7));
}

TEST(SessionRecordTest, KeepsWhatAPushTellsAboutItsWorker) {
  SessionRecord record;
  PushHeader header = Header(1);
  header.loss = 0.5f;
  record.Remember(header, StoredAnswer(), kNow);
  PushOutcome stale;
  stale.disposition = Disposition::kStaleDropped;
  record.Remember(Header(2), {stale, absl::nullopt}, kNow + absl::Seconds(1));
  PushOutcome skipped;
  skipped.disposition = Disposition::kSkipped;
  record.Remember(Header(2), {skipped, absl::nullopt}, kNow + absl::Seconds(1));
  EXPECT_EQ(record.accepted, 1u);
  EXPECT_EQ(record.stale, 1u);
  EXPECT_EQ(record.skipped, 1u);
  EXPECT_EQ(record.clock, 2u);  // but for the stale one
  EXPECT_EQ(record.loss, 0.5f);
  EXPECT_EQ(record.last_gradient_step, Step(20));
  EXPECT_EQ(record.last_push, kNow + absl::Seconds(1));
}

}  // namespace
}  // namespace sluice

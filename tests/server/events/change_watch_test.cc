// What a look at a job tells of the time since the look before. job_watch_test has more cases.

#include "server/events/change_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = JobChange::Kind;

// A job of which each Look() is two seconds later.
class ChangeWatchTest : public ::testing::Test {
 protected:
  ChangeWatchTest() { state_.incarnation = Incarnation(1); }

  std::vector<Kind> Look() {
    state_.now += absl::Seconds(2);
    news_ = watch_.Look(moment_);
    std::vector<Kind> kinds;
    for (const JobChange& change : news_.changes) kinds.push_back(change.kind);
    return kinds;
  }

  JobMoment moment_;
  ShardStatus& state_ = moment_.state;
  JobNews news_;
  ChangeWatch watch_;
};

TEST_F(ChangeWatchTest, TellsTheBeginAndTheEndOfAJobOnce) {
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
  state_.phase = Phase::kTraining;
  EXPECT_THAT(Look(), IsEmpty());
  state_.phase = Phase::kFinished;
  EXPECT_THAT(Look(), ElementsAre(Kind::kFinished));
  state_.phase = Phase::kDraining;
  EXPECT_THAT(Look(), ElementsAre(Kind::kDraining));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(ChangeWatchTest, TellsOfStepsBeforeTheEndThatFollowsThem) {
  Look();
  state_.step = Step(3);
  EXPECT_THAT(Look(), ElementsAre(Kind::kStep));
  EXPECT_THAT(Look(), IsEmpty());
  state_.step = Step(4);
  state_.phase = Phase::kFinished;
  EXPECT_THAT(Look(), ElementsAre(Kind::kStep, Kind::kFinished));
  state_.incarnation = Incarnation(2);
  state_.step = Step(2);
  state_.phase = Phase::kTraining;
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted, Kind::kStep));
}

TEST_F(ChangeWatchTest, AWarningBeginsOnceAndEndsOnce) {
  Look();
  state_.warnings = {{WarningKind::kLossRises, Step(3), absl::nullopt, "it rises"}};
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarning));
  EXPECT_EQ(news_.changes[0].warning, &state_.warnings[0]);
  EXPECT_THAT(Look(), IsEmpty());
  state_.warnings[0].over = Step(9);
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarningOver));
  EXPECT_THAT(Look(), IsEmpty());
  state_.warnings[0] = {WarningKind::kLossRises, Step(12), Step(13), "it rises again"};
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarning, Kind::kWarningOver));
}

TEST_F(ChangeWatchTest, AMeasurementIsToldOnceAndOfEachIncarnationAnew) {
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
  state_.measured = {1, {Step(0), {{"test accuracy", 0.5}}}};
  EXPECT_THAT(Look(), ElementsAre(Kind::kMeasured));
  EXPECT_THAT(Look(), IsEmpty());
  state_.measured.count = 3;  // two reports since the look before
  EXPECT_THAT(Look(), ElementsAre(Kind::kMeasured));
  state_.incarnation = Incarnation(2);
  state_.measured = {};
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
}

TEST_F(ChangeWatchTest, MeasuresRatesAndStalenessSinceTheLookBefore) {
  state_.staleness.Enter(20);
  state_.step = Step(5);
  Look();
  EXPECT_FALSE(news_.rates.has_value());
  state_.step = Step(9);
  state_.counters.received = 10;
  state_.traffic.bytes_received = 600;
  state_.traffic.bytes_sent = 800;
  state_.staleness.Enter(1);
  state_.staleness.Enter(4);
  Look();
  ASSERT_TRUE(news_.rates.has_value());
  EXPECT_EQ(news_.rates->steps, 2);
  EXPECT_EQ(news_.rates->pushes, 5);
  EXPECT_EQ(news_.rates->bytes_received, 300);
  EXPECT_EQ(news_.rates->bytes_sent, 400);
  EXPECT_EQ(news_.staleness, 2.5);
  Look();
  EXPECT_EQ(news_.rates->steps, 0);
  EXPECT_FALSE(news_.staleness.has_value());
}

TEST_F(ChangeWatchTest, ARateThatTheScheduleChangesIsNoNews) {
  state_.base_learning_rate = state_.learning_rate = 0.5;
  Look();
  state_.learning_rate = 0.25;
  EXPECT_THAT(Look(), IsEmpty());
  state_.base_learning_rate = 0.1;
  EXPECT_THAT(Look(), ElementsAre(Kind::kRate));
}

TEST_F(ChangeWatchTest, NamesTheSessionThatComesAndGoes) {
  Look();
  moment_.sessions.resize(2);
  moment_.sessions[0].worker = "observer";
  moment_.sessions[0].role = SessionRole::kObserver;
  moment_.sessions[1].worker = "worker";
  moment_.sessions[1].joined = true;
  EXPECT_THAT(Look(), ElementsAre(Kind::kJoined));
  EXPECT_EQ(news_.changes[0].session, &moment_.sessions[1]);
  EXPECT_EQ(news_.sessions[1].since, state_.now);
  moment_.sessions[1].presence = Presence::kEvicted;
  EXPECT_THAT(Look(), ElementsAre(Kind::kEvicted));
  EXPECT_EQ(news_.sessions.size(), 2);
}

}  // namespace
}  // namespace sluice

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
  ChangeWatchTest() { state_.set_incarnation(1); }

  std::vector<Kind> Look() {
    moment_.time += absl::Seconds(2);
    state_.mutable_running()->set_seconds(state_.running().seconds() + 2);
    news_ = watch_.Look(moment_);
    std::vector<Kind> kinds;
    for (const JobChange& change : news_.changes) kinds.push_back(change.kind);
    return kinds;
  }

  JobMoment moment_;
  v1::ServerState& state_ = moment_.state;
  JobNews news_;
  ChangeWatch watch_;
};

TEST_F(ChangeWatchTest, TellsTheBeginAndTheEndOfAJobOnce) {
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
  state_.set_phase(v1::TRAINING);
  EXPECT_THAT(Look(), IsEmpty());
  state_.set_phase(v1::FINISHED);
  EXPECT_THAT(Look(), ElementsAre(Kind::kFinished));
  state_.set_phase(v1::DRAINING);
  EXPECT_THAT(Look(), ElementsAre(Kind::kDraining));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(ChangeWatchTest, TellsOfStepsBeforeTheEndThatFollowsThem) {
  Look();
  state_.set_step(3);
  EXPECT_THAT(Look(), ElementsAre(Kind::kStep));
  EXPECT_THAT(Look(), IsEmpty());
  state_.set_step(4);
  state_.set_phase(v1::FINISHED);
  EXPECT_THAT(Look(), ElementsAre(Kind::kStep, Kind::kFinished));
  state_.set_incarnation(2);
  state_.set_step(2);
  state_.set_phase(v1::TRAINING);
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted, Kind::kStep));
}

TEST_F(ChangeWatchTest, AWarningBeginsOnceAndEndsOnce) {
  Look();
  v1::TrainingWarning& warning = *state_.add_warnings();
  warning.set_kind(v1::LOSS_RISES);
  warning.set_since(3);
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarning));
  EXPECT_EQ(news_.changes[0].warning, &warning);
  EXPECT_THAT(Look(), IsEmpty());
  warning.set_over(9);
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarningOver));
  EXPECT_THAT(Look(), IsEmpty());
  warning.set_since(12);
  warning.set_over(13);
  EXPECT_THAT(Look(), ElementsAre(Kind::kWarning, Kind::kWarningOver));
}

TEST_F(ChangeWatchTest, AMeasurementIsToldOnceAndOfEachIncarnationAnew) {
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
  state_.mutable_measurement()->set_reports(1);
  EXPECT_THAT(Look(), ElementsAre(Kind::kMeasured));
  EXPECT_THAT(Look(), IsEmpty());
  state_.mutable_measurement()->set_reports(3);  // two reports since the look before
  EXPECT_THAT(Look(), ElementsAre(Kind::kMeasured));
  state_.set_incarnation(2);
  state_.clear_measurement();
  EXPECT_THAT(Look(), ElementsAre(Kind::kStarted));
}

TEST_F(ChangeWatchTest, MeasuresRatesAndStalenessSinceTheLookBefore) {
  state_.mutable_staleness()->set_gradients(1);
  state_.mutable_staleness()->set_sum(20);
  state_.set_step(5);
  Look();
  EXPECT_FALSE(news_.rates.has_value());
  state_.set_step(9);
  state_.mutable_pushes()->set_received(10);
  state_.set_bytes_received(600);
  state_.set_bytes_sent(800);
  state_.mutable_staleness()->set_gradients(3);
  state_.mutable_staleness()->set_sum(25);
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
  state_.set_base_learning_rate(0.5);
  state_.set_learning_rate(0.5);
  Look();
  state_.set_learning_rate(0.25);
  EXPECT_THAT(Look(), IsEmpty());
  state_.set_base_learning_rate(0.1);
  EXPECT_THAT(Look(), ElementsAre(Kind::kRate));
}

TEST_F(ChangeWatchTest, NamesTheWorkerThatComesAndGoes) {
  Look();
  moment_.workers.resize(2);
  for (v1::Worker& worker : moment_.workers) worker.set_presence(v1::PRESENT);
  moment_.workers[0].set_worker("of an earlier incarnation");
  moment_.workers[1].set_worker("worker");
  moment_.workers[1].set_joined(true);
  EXPECT_THAT(Look(), ElementsAre(Kind::kJoined));
  EXPECT_EQ(news_.changes[0].worker, &moment_.workers[1]);
  EXPECT_EQ(news_.workers[1].since, moment_.time);
  moment_.workers[1].set_presence(v1::EVICTED);
  EXPECT_THAT(Look(), ElementsAre(Kind::kEvicted));
  EXPECT_EQ(news_.workers.size(), 2);
}

}  // namespace
}  // namespace sluice

// The rows and events that a job makes, second by second.

#include "server/web/history/job_watch.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Worker Worker(const std::string& name, uint64_t accepted = 0, float loss = 0) {
  v1::Worker worker;
  worker.set_worker(name);
  worker.set_presence(v1::PRESENT);
  worker.set_joined(true);
  worker.set_accepted(accepted);
  worker.set_loss(loss);
  return worker;
}

v1::TrainingWarning LossRises() {
  v1::TrainingWarning warning;
  warning.set_kind(v1::LOSS_RISES);
  warning.set_text("the loss rises");
  return warning;
}

v1::Server Moved(uint64_t received, uint64_t sent) {
  v1::Server server;
  server.set_wire_bytes_received(received);
  server.set_wire_bytes_sent(sent);
  return server;
}

// A job of which each Look() is a second later.
class JobWatchTest : public ::testing::Test {
 protected:
  JobWatchTest() {
    moment_.time = absl::FromUnixSeconds(5000);
    state_.set_incarnation(1);
  }

  const HistorySample& Look() {
    watch_.Look(moment_, memory_, spans_, history_);
    moment_.time += absl::Seconds(1);
    state_.mutable_running()->set_seconds(state_.running().seconds() + 1);
    row_ = history_.Newest();
    return row_;
  }

  double Value(const std::string& name) const {
    for (size_t i = 0; i < kColumns.size(); ++i) {
      if (name == kColumns[i].name) return row_.values[i];
    }
    ADD_FAILURE() << "no column " << name;
    return 0;
  }

  // "kind: text" of each event.
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const HistoryEvent& event : history_.events()) {
      events.push_back(event.kind + ": " + event.text);
    }
    return events;
  }

  JobMoment moment_;
  v1::ServerState& state_ = moment_.state;
  std::vector<v1::Worker>& workers_ = moment_.workers;
  uint64_t memory_ = 0;
  SpanSummary spans_;
  History history_;
  JobWatch watch_;
  HistorySample row_;
};

TEST_F(JobWatchTest, MakesARowOfWhatTheShardReports) {
  state_.set_step(40);
  Look();
  state_.set_step(52);
  state_.set_learning_rate(0.25);
  state_.mutable_pushes()->set_accepted(7);
  state_.mutable_pushes()->set_stale(3);
  state_.set_wire_bytes_received(1234);
  state_.set_workers(3);
  state_.mutable_current()->mutable_waiting()->set_seconds(4);
  memory_ = 777;
  Look();
  EXPECT_EQ(Value("time"), 5001);
  EXPECT_EQ(Value("step"), 52);
  EXPECT_EQ(Value("steps_per_second"), 12);
  EXPECT_EQ(Value("learning_rate"), 0.25);
  EXPECT_EQ(Value("accepted"), 7);
  EXPECT_EQ(Value("stale"), 3);
  EXPECT_EQ(Value("wire_bytes_received"), 1234);
  EXPECT_EQ(Value("workers"), 3);
  EXPECT_EQ(Value("waiting"), 4);
  EXPECT_EQ(Value("memory"), 777);
  EXPECT_TRUE(std::isnan(Value("checkpoint_age")));
}

TEST_F(JobWatchTest, TheBytesOnTheWireAreThoseOfAllServers) {
  state_.set_wire_bytes_received(1234);
  state_.set_wire_bytes_sent(34);
  moment_.servers = {Moved(1, 2)};
  Look();
  EXPECT_EQ(Value("wire_bytes_received"), 1234);
  EXPECT_EQ(Value("wire_bytes_sent"), 34);
  moment_.servers = {Moved(1000, 0), Moved(1001, 100), Moved(1002, 200)};
  Look();
  EXPECT_EQ(Value("wire_bytes_received"), 3003);
  EXPECT_EQ(Value("wire_bytes_sent"), 300);
}

TEST_F(JobWatchTest, TheFiguresOfTablesAreSumsAndUnknownIfThereAreNone) {
  Look();
  EXPECT_TRUE(std::isnan(Value("table_rows")));
  moment_.tables.resize(2);
  Look();
  EXPECT_EQ(Value("table_rows"), 0);
  moment_.tables[0].set_rows(21);
  moment_.tables[1].set_rows(200);
  moment_.tables[0].set_bytes(2000);
  moment_.tables[0].set_reads(14);
  moment_.tables[1].set_reads(61);
  moment_.tables[1].set_hits(40);
  Look();
  EXPECT_EQ(Value("table_rows"), 221);
  EXPECT_EQ(Value("table_bytes"), 2000);
  EXPECT_EQ(Value("row_reads"), 75);
  EXPECT_EQ(Value("row_hits"), 40);
}

TEST_F(JobWatchTest, APauseOfTheShardsClockShowsInTheTimesAndNotInTheSpeed) {
  state_.set_step(1);
  Look();
  moment_.time += absl::Seconds(600);
  state_.set_step(4);
  *state_.add_warnings() = LossRises();
  Look();
  EXPECT_EQ(Value("time"), 5601);
  EXPECT_EQ(Value("steps_per_second"), 3);
  EXPECT_EQ(history_.events().back().time, 5601);
}

TEST_F(JobWatchTest, KeepsWhatTheRunIsLike) {
  state_.mutable_verdict()->set_kind(v1::Verdict::FINISHED);
  state_.set_base_learning_rate(0.5);
  state_.set_loss(0.25);
  Look();
  EXPECT_EQ(history_.facts().verdict, "finished");
  EXPECT_EQ(history_.facts().learning_rate, 0.5);
  EXPECT_EQ(history_.facts().loss, 0.25);
  state_.mutable_verdict()->set_kind(v1::Verdict::ENDING);
  Look();
  EXPECT_EQ(history_.facts().verdict, "finished");
  state_.mutable_verdict()->set_kind(v1::Verdict::SLOW);
  Look();
  state_.mutable_verdict()->set_kind(v1::Verdict::ENDING);
  Look();
  EXPECT_EQ(history_.facts().verdict, "ending");
}

TEST_F(JobWatchTest, AJobDoesNotGoOnWithTheHistoryOfAnother) {
  history_.BeginJob("another");
  history_.Add({4000, 7, "joined", "a worker of it"});
  state_.set_job_id("this");
  Look();
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started"));
  EXPECT_THAT(history_.Rows(), SizeIs(2));
}

TEST_F(JobWatchTest, KnowsNoSpeedBeforeTheFirstStepAndAcrossIncarnations) {
  Look();
  Look();
  EXPECT_TRUE(std::isnan(Value("steps_per_second")));
  state_.set_step(10);
  Look();
  EXPECT_EQ(Value("steps_per_second"), 10);
  state_.set_incarnation(2);
  state_.set_step(5);
  Look();
  EXPECT_TRUE(std::isnan(Value("steps_per_second")));
}

TEST_F(JobWatchTest, TheLossIsTheMeanOfWorkersThatPushedSinceTheRowBefore) {
  workers_ = {Worker("a", 1, 2), Worker("b", 1, 4)};
  Look();
  EXPECT_EQ(Value("loss"), 3);
  workers_[0] = Worker("a", 2, 1);  // b has not pushed again
  const HistorySample& row = Look();
  EXPECT_EQ(Value("loss"), 1);
  EXPECT_EQ(row.losses[0], 1);
  EXPECT_TRUE(std::isnan(row.losses[1]));
  Look();
  EXPECT_TRUE(std::isnan(Value("loss")));
}

TEST_F(JobWatchTest, TellsWhatEachWorkerDoes) {
  workers_ = {Worker("computes"), Worker("lost"), Worker("pushes"), Worker("waits"),
              Worker("pulls")};
  workers_[1].set_presence(v1::LOST);
  workers_[3].set_contributed(true);
  for (const size_t i : {1, 2, 4}) workers_[i].set_pulling(true);
  v1::AwaitedWorker& awaited = *state_.mutable_current()->add_awaited();
  awaited.set_worker("pushes");
  awaited.set_bytes_arrived(100);
  Look();
  std::vector<Activity> activities;
  for (const SeenWorker& worker : watch_.workers()) activities.push_back(worker.activity);
  EXPECT_THAT(activities, ElementsAre(Activity::kComputes, Activity::kLost, Activity::kPushes,
                                      Activity::kWaits, Activity::kPulls));
  EXPECT_EQ(row_.activities[2], Activity::kPushes);
  EXPECT_TRUE(watch_.workers()[2].awaited);
}

TEST_F(JobWatchTest, AWorkerThatASlowJobWaitsForHasStalled) {
  workers_ = {Worker("awaited"), Worker("other")};
  state_.mutable_current()->add_awaited()->set_worker("awaited");
  Look();
  EXPECT_EQ(watch_.workers()[0].activity, Activity::kComputes);
  state_.mutable_verdict()->set_kind(v1::Verdict::SLOW);
  Look();
  EXPECT_EQ(watch_.workers()[0].activity, Activity::kStalled);
  EXPECT_EQ(watch_.workers()[1].activity, Activity::kComputes);
  state_.mutable_current()->mutable_awaited(0)->set_bytes_arrived(1);
  Look();
  EXPECT_EQ(watch_.workers()[0].activity, Activity::kPushes);
}

TEST_F(JobWatchTest, NotesWhoComesAndGoesOnce) {
  workers_ = {Worker("a")};
  Look();
  Look();
  workers_[0].set_presence(v1::LOST);
  Look();
  workers_[0].set_presence(v1::EVICTED);
  Look();
  workers_[0].set_presence(v1::PRESENT);
  Look();
  workers_[0].set_presence(v1::LEFT);
  Look();
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started", "joined: a", "lost: a",
                                    "evicted: a", "joined: a", "left: a"));
  EXPECT_THAT(watch_.workers(), IsEmpty());
}

TEST_F(JobWatchTest, AWorkerThatCameAndWentBetweenTwoLooksIsInTheEventsAndTheLoss) {
  Look();
  workers_ = {Worker("brief", 3, 0.5)};
  workers_[0].set_presence(v1::LEFT);
  Look();
  EXPECT_EQ(Value("loss"), 0.5);
  EXPECT_THAT(Events(),
              ElementsAre("server: the server has started", "joined: brief", "left: brief"));
}

TEST_F(JobWatchTest, AWorkerThatTheShardHasForgottenIsANewOneWhenItComesAgain) {
  workers_ = {Worker("again", 3, 0.5)};
  workers_[0].set_presence(v1::LEFT);
  Look();
  workers_.clear();
  Look();
  workers_ = {Worker("again", 1, 0.25)};
  workers_[0].set_presence(v1::LEFT);
  Look();
  EXPECT_EQ(Value("loss"), 0.25);
  EXPECT_THAT(Events(), ElementsAre("server: the server has started", "joined: again",
                                    "left: again", "joined: again", "left: again"));
}

TEST_F(JobWatchTest, NotesRestartsCheckpointsWarningsAndWhatAnOperatorChanges) {
  state_.set_base_learning_rate(0.5);
  Look();
  state_.mutable_last_checkpoint()->set_step(20);
  state_.mutable_last_checkpoint()->mutable_since()->set_seconds(2);
  Look();
  *state_.add_warnings() = LossRises();
  state_.set_base_learning_rate(0.25);
  Look();
  Look();
  EXPECT_EQ(Value("checkpoint_age"), 2);
  state_.mutable_schedule()->set_warmup_steps(100);
  state_.set_base_learning_rate(0.125);
  Look();
  state_.set_incarnation(2);
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started",
                                    "checkpoint: a checkpoint of step 20 is saved",
                                    "rate: the learning rate is 0.25", "warning: the loss rises",
                                    "rate: the learning rate is 0.125, before the schedule",
                                    "server: the server has started again, as number 2"));
}

TEST_F(JobWatchTest, AThousandWorkersHaveAsManyLanesAsThereAre) {
  for (int i = 0; i < 1000; ++i) workers_.push_back(Worker("worker-" + std::to_string(i), 1, 2));
  const HistorySample& row = Look();
  EXPECT_THAT(watch_.workers(), SizeIs(1000));
  EXPECT_EQ(Value("loss"), 2);
  for (const float loss : row.losses) EXPECT_EQ(loss, 2);
  EXPECT_THAT(Events(), ElementsAre("server: the server has started",
                                    "joined: 1000 workers: worker-0, worker-1, worker-2, worker-3, "
                                    "worker-4, worker-5, worker-6, worker-7, …"));
}

TEST_F(JobWatchTest, KeepsTheTimesOfStepsAndTheBytesInFlight) {
  state_.mutable_in_flight()->set_bytes(4096);
  spans_.step_median = 0.25;
  spans_.step_p99 = 0.5;
  spans_.sync_median = 0.03125;
  spans_.sync_p99 = 0.75;
  spans_.mean[static_cast<size_t>(ServerSpan::kWait)] = 0.125;
  spans_.mean[static_cast<size_t>(ServerSpan::kEncode)] = 0.0625;
  Look();
  EXPECT_EQ(Value("in_flight"), 4096);
  EXPECT_EQ(Value("step_median"), 0.25);
  EXPECT_EQ(Value("step_p99"), 0.5);
  EXPECT_EQ(Value("part_wait"), 0.125);
  EXPECT_EQ(Value("part_encode"), 0.0625);
  EXPECT_EQ(Value("sync_median"), 0.03125);
  EXPECT_EQ(Value("sync_p99"), 0.75);
  EXPECT_TRUE(std::isnan(Value("part_apply")));
}

TEST_F(JobWatchTest, AnAccuracyIsInTheRowInWhichItWasReported) {
  Look();
  EXPECT_TRUE(std::isnan(Value("test_accuracy")));
  v1::LastMeasurement& measured = *state_.mutable_measurement();
  measured.set_reports(1);
  measured.set_step(3);
  (*measured.mutable_results())["test accuracy"] = 0.5;
  Look();
  EXPECT_EQ(Value("test_accuracy"), 0.5);
  EXPECT_EQ(Value("measured_step"), 3);
  Look();
  EXPECT_TRUE(std::isnan(Value("test_accuracy")));
  EXPECT_TRUE(std::isnan(Value("measured_step")));
  measured.set_reports(2);  // the same again
  Look();
  EXPECT_EQ(Value("test_accuracy"), 0.5);
  measured.set_reports(3);
  measured.set_step(4);
  measured.clear_results();
  (*measured.mutable_results())["test loss"] = 1;
  Look();
  EXPECT_TRUE(std::isnan(Value("test_accuracy")));
  EXPECT_TRUE(std::isnan(Value("measured_step")));
}

TEST_F(JobWatchTest, KeepsTheTasksOfEachExecutor) {
  for (const auto& [name, tasks] :
       {std::pair("arrive", 1), std::pair("step", 2), std::pair("encode", 3),
        std::pair("summary", 4), std::pair("hook", 5)}) {
    (*state_.mutable_tasks())[name] = tasks;
  }
  Look();
  EXPECT_EQ(Value("tasks_arrive"), 1);
  EXPECT_EQ(Value("tasks_step"), 2);
  EXPECT_EQ(Value("tasks_encode"), 3);
  EXPECT_EQ(Value("tasks_summary"), 4);
  EXPECT_EQ(Value("tasks_hook"), 5);
}

}  // namespace
}  // namespace sluice

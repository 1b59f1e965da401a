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

SessionRecord Worker(const std::string& name, uint64_t accepted = 0, float loss = 0) {
  SessionRecord record;
  record.worker = name;
  record.joined = true;
  record.accepted = accepted;
  record.loss = loss;
  return record;
}

// A job of which each Look() is a second later.
class JobWatchTest : public ::testing::Test {
 protected:
  JobWatchTest() {
    moment_.time = absl::FromUnixSeconds(5000);
    state_.now = absl::FromUnixSeconds(7);
    state_.incarnation = Incarnation(1);
  }

  const HistorySample& Look() {
    watch_.Look(moment_, memory_, spans_, history_);
    moment_.time += absl::Seconds(1);
    state_.now += absl::Seconds(1);
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
  ShardStatus& state_ = moment_.state;
  std::vector<SessionRecord>& sessions_ = moment_.sessions;
  uint64_t memory_ = 0;
  SpanSummary spans_;
  History history_;
  JobWatch watch_;
  HistorySample row_;
};

TEST_F(JobWatchTest, MakesARowOfWhatTheShardReports) {
  state_.step = Step(40);
  Look();
  state_.step = Step(52);
  state_.learning_rate = 0.25;
  state_.counters.accepted = 7;
  state_.counters.stale = 3;
  state_.traffic.wire_bytes_received = 1234;
  state_.workers = 3;
  state_.current.since = state_.now - absl::Seconds(4);
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
  state_.traffic.wire_bytes_received = 1234;
  state_.traffic.wire_bytes_sent = 34;
  state_.each_server.resize(1);  // its own figures are not filled in here
  Look();
  EXPECT_EQ(Value("wire_bytes_received"), 1234);
  EXPECT_EQ(Value("wire_bytes_sent"), 34);
  state_.each_server.resize(3);
  for (uint64_t i = 0; i < 3; ++i) {
    state_.each_server[i].figures = {Step(4), 1000 + i, 100 * i};
  }
  Look();
  EXPECT_EQ(Value("wire_bytes_received"), 3003);
  EXPECT_EQ(Value("wire_bytes_sent"), 300);
}

TEST_F(JobWatchTest, TheTablesAreThoseOfAllServersAndUnknownIfThereAreNone) {
  Look();
  EXPECT_TRUE(std::isnan(Value("table_rows")));
  TableSpec items;
  items.name = "items";
  items.width = 2;
  TableSpec users = items;
  users.name = "users";
  state_.layout = std::make_shared<const Layout>(*Layout::Create({}, {items, users}));
  state_.each_server.resize(2);
  Look();
  EXPECT_EQ(Value("table_rows"), 0);
  for (uint64_t i = 0; i < 2; ++i) {
    std::vector<TableStatus>& tables = state_.each_server[i].figures.tables;
    tables.resize(2);
    tables[0].rows = 10 + i;
    tables[1].rows = 100;
    tables[0].bytes = 1000;
    tables[1].reads = 30 + i;
    tables[0].reads = 7;
    tables[1].hits = 20;
  }
  Look();
  EXPECT_EQ(Value("table_rows"), 10 + 11 + 100 + 100);
  EXPECT_EQ(Value("table_bytes"), 2000);
  EXPECT_EQ(Value("row_reads"), 30 + 31 + 7 + 7);
  EXPECT_EQ(Value("row_hits"), 40);
}

TEST_F(JobWatchTest, APauseOfTheShardsClockShowsInTheTimesAndNotInTheSpeed) {
  state_.step = Step(1);
  moment_.checkpoint = Step(1);
  Look();
  moment_.time += absl::Seconds(600);
  state_.step = Step(4);
  state_.warnings = {{WarningKind::kLossRises, Step(3), absl::nullopt, "the loss rises"}};
  Look();
  EXPECT_EQ(Value("time"), 5601);
  EXPECT_EQ(Value("steps_per_second"), 3);
  EXPECT_EQ(Value("checkpoint_age"), 601);
  EXPECT_EQ(history_.events().back().time, 5601);
}

TEST_F(JobWatchTest, AJobDoesNotGoOnWithTheHistoryOfAnother) {
  history_.BeginJob("another");
  history_.Add({4000, 7, "joined", "a worker of it"});
  state_.job_id = "this";
  Look();
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started"));
  EXPECT_THAT(history_.Rows(), SizeIs(2));
}

TEST_F(JobWatchTest, KnowsNoSpeedBeforeTheFirstStepAndAcrossIncarnations) {
  Look();
  Look();
  EXPECT_TRUE(std::isnan(Value("steps_per_second")));
  state_.step = Step(10);
  Look();
  EXPECT_EQ(Value("steps_per_second"), 10);
  state_.incarnation = Incarnation(2);
  state_.step = Step(5);
  Look();
  EXPECT_TRUE(std::isnan(Value("steps_per_second")));
}

TEST_F(JobWatchTest, TheLossIsTheMeanOfWorkersThatPushedSinceTheRowBefore) {
  sessions_ = {Worker("a", 1, 2), Worker("b", 1, 4)};
  Look();
  EXPECT_EQ(Value("loss"), 3);
  sessions_[0] = Worker("a", 2, 1);  // b has not pushed again
  const HistorySample& row = Look();
  EXPECT_EQ(Value("loss"), 1);
  EXPECT_EQ(row.losses[0], 1);
  EXPECT_TRUE(std::isnan(row.losses[1]));
  Look();
  EXPECT_TRUE(std::isnan(Value("loss")));
}

TEST_F(JobWatchTest, TellsWhatEachWorkerDoes) {
  state_.step = Step(5);
  sessions_ = {Worker("computes"), Worker("lost"), Worker("pushes"), Worker("waits"),
               Worker("pulls")};
  for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i].session = SessionId(i + 1);
  sessions_[1].presence = Presence::kLost;
  sessions_[3].contributed = Step(5);
  moment_.pulling = {sessions_[1].session, sessions_[2].session, sessions_[4].session};
  AwaitedWorker awaited;
  awaited.worker = "pushes";
  awaited.bytes_arrived = 100;
  state_.current.awaited = {awaited};
  Look();
  std::vector<Activity> activities;
  for (const SeenWorker& worker : watch_.workers()) activities.push_back(worker.activity);
  EXPECT_THAT(activities, ElementsAre(Activity::kComputes, Activity::kLost, Activity::kPushes,
                                      Activity::kWaits, Activity::kPulls));
  EXPECT_EQ(row_.activities[2], Activity::kPushes);
  EXPECT_TRUE(watch_.workers()[2].awaited);
}

TEST_F(JobWatchTest, AWorkerPullsFromAnyServerThatIsThere) {
  sessions_ = {Worker("a"), Worker("b"), Worker("c")};
  sessions_[0].session = SessionId(1);
  sessions_[1].session = SessionId(2);
  sessions_[2].session = SessionId(3);
  state_.each_server.resize(3);
  state_.each_server[1].connected = true;
  state_.each_server[1].figures.pulling = {sessions_[1].session};
  state_.each_server[2].figures.pulling = {sessions_[2].session};  // the last it said
  Look();
  EXPECT_EQ(watch_.workers()[0].activity, Activity::kComputes);
  EXPECT_EQ(watch_.workers()[1].activity, Activity::kPulls);
  EXPECT_EQ(watch_.workers()[2].activity, Activity::kComputes);
}

TEST_F(JobWatchTest, NotesWhoComesAndGoesOnce) {
  sessions_ = {Worker("a")};
  Look();
  Look();
  sessions_[0].presence = Presence::kLost;
  Look();
  sessions_[0].presence = Presence::kEvicted;
  Look();
  sessions_[0].presence = Presence::kPresent;
  Look();
  sessions_[0].presence = Presence::kLeft;
  Look();
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started", "joined: a", "lost: a",
                                    "evicted: a", "joined: a", "left: a"));
  EXPECT_THAT(watch_.workers(), IsEmpty());
}

TEST_F(JobWatchTest, AWorkerThatCameAndWentBetweenTwoLooksIsInTheEventsAndTheLoss) {
  Look();
  sessions_ = {Worker("brief", 3, 0.5)};
  sessions_[0].presence = Presence::kLeft;
  Look();
  EXPECT_EQ(Value("loss"), 0.5);
  EXPECT_THAT(Events(),
              ElementsAre("server: the server has started", "joined: brief", "left: brief"));
}

TEST_F(JobWatchTest, AWorkerThatTheShardHasForgottenIsANewOneWhenItComesAgain) {
  sessions_ = {Worker("again", 3, 0.5)};
  sessions_[0].presence = Presence::kLeft;
  Look();
  sessions_.clear();
  Look();
  sessions_ = {Worker("again", 1, 0.25)};
  sessions_[0].presence = Presence::kLeft;
  Look();
  EXPECT_EQ(Value("loss"), 0.25);
  EXPECT_THAT(Events(), ElementsAre("server: the server has started", "joined: again",
                                    "left: again", "joined: again", "left: again"));
}

TEST_F(JobWatchTest, NotesRestartsCheckpointsWarningsAndWhatAnOperatorChanges) {
  state_.base_learning_rate = 0.5;
  Look();
  moment_.checkpoint = Step(20);
  Look();
  state_.warnings = {{WarningKind::kLossRises, Step(3), absl::nullopt, "the loss rises"}};
  state_.base_learning_rate = 0.25;
  Look();
  Look();
  EXPECT_EQ(Value("checkpoint_age"), 2);
  state_.schedule.warmup_steps = 100;
  state_.base_learning_rate = 0.125;
  Look();
  state_.incarnation = Incarnation(2);
  Look();
  EXPECT_THAT(Events(), ElementsAre("server: the server has started",
                                    "checkpoint: a checkpoint of step 20 is saved",
                                    "rate: the learning rate is 0.25", "warning: the loss rises",
                                    "rate: the learning rate is 0.125, before the schedule",
                                    "server: the server has started again, as number 2"));
}

TEST_F(JobWatchTest, AThousandWorkersHaveAsManyLanesAsThereAre) {
  for (int i = 0; i < 1000; ++i) sessions_.push_back(Worker("worker-" + std::to_string(i), 1, 2));
  const HistorySample& row = Look();
  EXPECT_THAT(watch_.workers(), SizeIs(1000));
  EXPECT_EQ(Value("loss"), 2);
  for (const float loss : row.losses) EXPECT_EQ(loss, 2);
  EXPECT_THAT(Events(), ElementsAre("server: the server has started",
                                    "joined: 1000 workers: worker-0, worker-1, worker-2, worker-3, "
                                    "worker-4, worker-5, worker-6, worker-7, …"));
}

TEST_F(JobWatchTest, KeepsTheTimesOfStepsAndTheBytesInFlight) {
  state_.in_flight.bytes = 4096;
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
  state_.measured = {1, {Step(3), {{"test accuracy", 0.5}, {"test loss", 1}}}};
  Look();
  EXPECT_EQ(Value("test_accuracy"), 0.5);
  EXPECT_EQ(Value("measured_step"), 3);
  Look();
  EXPECT_TRUE(std::isnan(Value("test_accuracy")));
  EXPECT_TRUE(std::isnan(Value("measured_step")));
  state_.measured.count = 2;  // the same again
  Look();
  EXPECT_EQ(Value("test_accuracy"), 0.5);
  state_.measured = {3, {Step(4), {{"test loss", 1}}}};
  Look();
  EXPECT_TRUE(std::isnan(Value("test_accuracy")));
  EXPECT_TRUE(std::isnan(Value("measured_step")));
}

TEST_F(JobWatchTest, KeepsTheTasksOfEachExecutor) {
  moment_.executor_tasks = {{"arrive", 1}, {"step", 2}, {"encode", 3}, {"summary", 4}, {"hook", 5}};
  Look();
  EXPECT_EQ(Value("tasks_arrive"), 1);
  EXPECT_EQ(Value("tasks_step"), 2);
  EXPECT_EQ(Value("tasks_encode"), 3);
  EXPECT_EQ(Value("tasks_summary"), 4);
  EXPECT_EQ(Value("tasks_hook"), 5);
}

}  // namespace
}  // namespace sluice

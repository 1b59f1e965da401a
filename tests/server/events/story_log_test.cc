#include "server/events/story_log.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Looks at a job through a ChangeWatch, as EventFiles does.
class StoryLogTest : public ::testing::Test {
 protected:
  StoryLogTest() {
    state().set_job_id("07466a53");
    state().set_incarnation(1);
    state().set_expected_workers(3);
    state().set_phase(v1::WAITING_FOR_WORKERS);
    Pass(0);
  }

  v1::ServerState& state() { return moment_.state; }

  void SetWorker(const std::string& name, v1::WorkerPresence presence) {
    for (v1::Worker& worker : moment_.workers) {
      if (worker.worker() == name) worker.set_presence(presence);
    }
  }
  void AddWorker(const std::string& name, uint32_t index) {
    v1::Worker& worker = moment_.workers.emplace_back();
    worker.set_worker(name);
    worker.set_presence(v1::PRESENT);
    worker.set_index(index);
    worker.set_host("node7");
    worker.set_pid(100 + index);
    worker.set_joined(true);
  }

  // Returns what is said after so many seconds.
  std::vector<std::string> Pass(int seconds) {
    moment_.time += absl::Seconds(seconds);
    state().mutable_running()->set_seconds(state().running().seconds() + seconds);
    uint32_t here = 0;
    for (const v1::Worker& worker : moment_.workers) here += worker.presence() == v1::PRESENT;
    state().mutable_worker_counts()->set_connected(here);
    state().set_workers(here);
    return log_.Look(moment_, changes_.Look(moment_));
  }

  JobMoment moment_;
  ChangeWatch changes_;
  StoryLog log_;
};

TEST_F(StoryLogTest, TellsOfAWorkerOnceThatItHasStalled) {
  v1::StalledWorker& stalled = *state().mutable_current()->add_stalled();
  stalled.set_worker("worker-1");
  stalled.mutable_since_last_push()->set_seconds(12);
  stalled.mutable_usual()->set_nanos(400'000'000);
  EXPECT_THAT(Pass(1),
              ElementsAre("worker-1 has sent no gradient for 12 s; it usually needs 0.4 s"));
  EXPECT_THAT(Pass(1), IsEmpty());
  state().mutable_current()->clear_stalled();
  EXPECT_THAT(Pass(1), IsEmpty());
}

TEST_F(StoryLogTest, TellsWhoComesAndGoes) {
  AddWorker("worker-0", 0);
  EXPECT_THAT(
      Pass(1),
      ElementsAre("worker-0 (process 100 on node7) has joined as worker 0; workers here: 1 of 3"));
  AddWorker("worker-1", 1);
  AddWorker("worker-2", 2);
  EXPECT_THAT(
      Pass(1),
      ElementsAre("worker-1 (process 101 on node7) has joined as worker 1",
                  "worker-2 (process 102 on node7) has joined as worker 2; workers here: 3 of 3"));
  SetWorker("worker-1", v1::LOST);
  EXPECT_THAT(Pass(1), ElementsAre("worker-1 (process 101 on node7) has lost its connection, and "
                                   "may come back within its lease; workers here: 2 of 3"));
  SetWorker("worker-1", v1::PRESENT);
  EXPECT_THAT(
      Pass(1),
      ElementsAre("worker-1 (process 101 on node7) is back as worker 1; workers here: 3 of 3"));
  SetWorker("worker-2", v1::EVICTED);
  EXPECT_THAT(Pass(1),
              ElementsAre("worker-2 (process 102 on node7) takes no part any more: it has failed, "
                          "or was silent for its lease; workers here: 2 of 3"));
  moment_.workers[0].set_accepted(7);
  SetWorker("worker-0", v1::LEFT);
  EXPECT_THAT(Pass(1), ElementsAre("worker-0 (process 100 on node7) has left, after 7 gradients "
                                   "that counted; workers here: 1 of 3"));
  EXPECT_THAT(Pass(1), IsEmpty());
}

TEST_F(StoryLogTest, SumsUpManyWorkers) {
  state().set_expected_workers(1000);
  for (uint32_t i = 0; i < 640; ++i) AddWorker(absl::StrCat("worker-", i), i);
  EXPECT_THAT(Pass(1), ElementsAre("640 workers have joined; workers here: 640 of 1000"));
  for (v1::Worker& worker : moment_.workers) worker.set_presence(v1::LOST);
  EXPECT_THAT(Pass(1), ElementsAre("640 workers have lost their connections, and may come back "
                                   "within their leases; workers here: 0 of 1000"));
}

TEST_F(StoryLogTest, TellsHowFarTrainingIsLessAndLessOften) {
  AddWorker("worker-0", 0);
  Pass(1);
  state().set_phase(v1::TRAINING);
  EXPECT_THAT(Pass(1), ElementsAre("training has begun with 1 worker, and is at step 0"));
  const auto train = [this](int seconds, uint64_t steps) {
    state().set_step(state().step() + steps);
    moment_.workers[0].set_accepted(state().step());
    return Pass(seconds);
  };
  moment_.workers[0].set_loss(0.5);
  EXPECT_THAT(train(5, 50), IsEmpty());
  moment_.workers[0].set_loss(0.25);
  EXPECT_THAT(train(5, 75), ElementsAre("step 125: 12.5 steps/s, loss 0.375, 1 worker"));
  EXPECT_THAT(train(19, 38), IsEmpty());
  EXPECT_THAT(train(1, 2), ElementsAre("step 165: 2 steps/s, loss 0.25, 1 worker"));
  EXPECT_THAT(train(39, 1), IsEmpty());
  EXPECT_THAT(train(1, 0), ElementsAre("step 166: 0.025 steps/s, loss 0.25, 1 worker"));
  EXPECT_THAT(train(59, 0), IsEmpty());
  EXPECT_THAT(train(30, 0), IsEmpty());  // StepWaitLog tells of a step that waits
}

TEST_F(StoryLogTest, TellsThatItWaitsForWorkersToJoin) {
  AddWorker("worker-0", 0);
  Pass(1);
  EXPECT_THAT(Pass(19), ElementsAre("has waited 20 s for 2 of 3 workers to join"));
  EXPECT_THAT(Pass(19), IsEmpty());
  EXPECT_THAT(Pass(1), ElementsAre("has waited 40 s for 2 of 3 workers to join"));
  EXPECT_THAT(Pass(40), ElementsAre("has waited 1 min 20 s for 2 of 3 workers to join"));
}

TEST_F(StoryLogTest, TellsWhatWasChangedAndMeasured) {
  state().mutable_consistency()->set_mode(v1::ASYNC);
  state().mutable_consistency()->set_quorum(2);
  state().set_base_learning_rate(0.5);
  EXPECT_THAT(Pass(1), ElementsAre("from step 0 on the rules are async, quorum 2"));
  state().set_base_learning_rate(0.125);
  state().mutable_measurement()->set_step(38);
  state().mutable_measurement()->set_reports(1);
  (*state().mutable_measurement()->mutable_results())["test accuracy"] = 0.8561;
  EXPECT_THAT(Pass(1), ElementsAre("from step 0 on the learning rate is 0.125, without schedule",
                                   "step 38 was measured, test accuracy 0.8561"));
}

TEST_F(StoryLogTest, TellsTheEndAndItsResults) {
  state().set_phase(v1::TRAINING);
  Pass(1);
  state().set_step(1875);
  state().set_phase(v1::FINISHED);
  state().mutable_since_initialized()->set_seconds(125);
  state().mutable_since_last_step()->set_seconds(1);
  moment_.results["test accuracy"] = 0.85614;
  EXPECT_THAT(Pass(1), ElementsAre("training has finished at step 1875, 2 min 4 s after it began, "
                                   "test accuracy 0.8561"));
}

}  // namespace
}  // namespace sluice

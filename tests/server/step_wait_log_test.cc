#include "server/step_wait_log.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1700000000);

// Step 17 has waited that long, for nobody in particular: two of its three gradients are there.
ShardStatus Waiting(absl::Duration duration) {
  ShardStatus state;
  state.step = Step(17);
  state.now = kStart + duration;
  state.current.since = kStart;
  state.current.accumulated = 2;
  state.current.required = 3;
  return state;
}

ShardStatus WaitingFor(absl::Duration duration, const std::vector<AwaitedWorker>& workers) {
  ShardStatus state = Waiting(duration);
  state.current.awaited = workers;
  state.current.missing = workers.size();
  return state;
}

AwaitedWorker Silent(const std::string& name, absl::Duration silence, uint64_t bytes = 0) {
  AwaitedWorker worker;
  worker.worker = name;
  worker.since_last_seen = silence;
  worker.bytes_arrived = bytes;
  return worker;
}

class StepWaitLogTest : public ::testing::Test {
 protected:
  // The line for a step that has waited that long; empty if there is none.
  std::string After(absl::Duration duration) { return log_.Look(Waiting(duration)).value_or(""); }

  StepWaitLog log_{absl::Seconds(5)};
};

TEST_F(StepWaitLogTest, SaysNothingBeforeTheThreshold) {
  EXPECT_EQ(After(absl::ZeroDuration()), "");
  EXPECT_EQ(After(absl::Seconds(5) - absl::Nanoseconds(1)), "");
}

TEST_F(StepWaitLogTest, SaysNothingOfAStepThatDoesNotWait) {
  ShardStatus idle = Waiting(absl::Hours(1));
  idle.current.since.reset();
  EXPECT_EQ(log_.Look(idle), absl::nullopt);
}

TEST_F(StepWaitLogTest, SaysHowManyGradientsAreMissingWhereNobodyInParticularIs) {
  EXPECT_EQ(After(absl::Seconds(5)), "step 17 has waited 5 s for 1 more gradient");
}

TEST_F(StepWaitLogTest, NamesTheServerThatHoldsTheStepUp) {
  ShardStatus state = Waiting(absl::Minutes(1));
  state.servers = 3;
  state.awaited_holder = AwaitedHolder{2, state.now - absl::Seconds(4)};
  EXPECT_EQ(log_.Look(state), absl::nullopt);
  state.now += absl::Seconds(1);
  EXPECT_EQ(log_.Look(state), "step 17 has waited 5 s for server 2 of 3");
}

TEST_F(StepWaitLogTest, NamesTheWorkersWhereTheyAreKnown) {
  EXPECT_EQ(
      log_.Look(WaitingFor(absl::Seconds(5), {Silent("worker-2", absl::Milliseconds(4100)),
                                              Silent("worker-3", absl::ZeroDuration(), 4096)}))
          .value_or(""),
      "step 17 has waited 5 s for worker-2 (last seen 4 s ago), "
      "worker-3 (last seen 0 s ago, 4.1 kB of its push here)");
}

TEST_F(StepWaitLogTest, SaysHowManyHaveNotJoined) {
  ShardStatus state = Waiting(absl::Seconds(5));
  state.current.missing = 2;
  state.current.absent = 2;
  EXPECT_EQ(log_.Look(state).value_or(""),
            "step 17 has waited 5 s for 2 workers still to join (see --workers and "
            "--start-timeout)");
}

TEST_F(StepWaitLogTest, SaysWhoIsToJoinIfNobodyIsThereAnyMore) {
  ShardStatus state = Waiting(absl::ZeroDuration());
  state.phase = Phase::kWaitingForWorkers;
  state.current.since.reset();
  state.current.missing = state.current.absent = 1;
  EXPECT_EQ(log_.Look(state), absl::nullopt);
  state.now += absl::Seconds(9);
  EXPECT_EQ(log_.Look(state), absl::nullopt) << "there are no parameters";
  state.times.initialized = kStart;
  EXPECT_EQ(log_.Look(state), absl::nullopt);
  state.now += absl::Seconds(5);
  EXPECT_EQ(log_.Look(state).value_or(""),
            "step 17 has waited 5 s for 1 worker still to join (see --workers and "
            "--start-timeout)");
  state.workers = 1;
  EXPECT_EQ(log_.Look(state), absl::nullopt);
}

TEST_F(StepWaitLogTest, SpeaksAgainEachTimeTheWaitHasDoubled) {
  EXPECT_NE(After(absl::Seconds(5)), "");
  EXPECT_EQ(After(absl::Seconds(5)), "");
  EXPECT_EQ(After(absl::Seconds(10) - absl::Nanoseconds(1)), "");
  EXPECT_NE(After(absl::Seconds(10)), "");
  EXPECT_EQ(After(absl::Seconds(19)), "");
  EXPECT_NE(After(absl::Seconds(21)), "");  // asked late
  EXPECT_EQ(After(absl::Seconds(41)), "");
  EXPECT_NE(After(absl::Seconds(42)), "");
}

TEST_F(StepWaitLogTest, BeginsAnewWithTheNextWait) {
  EXPECT_NE(After(absl::Seconds(100)), "");
  ShardStatus next = Waiting(absl::Seconds(104));
  next.step = Step(18);
  next.current.since = kStart + absl::Seconds(100);
  EXPECT_EQ(log_.Look(next), absl::nullopt);
  next.now += absl::Seconds(1);
  EXPECT_EQ(log_.Look(next).value_or(""), "step 18 has waited 5 s for 1 more gradient");
}

TEST_F(StepWaitLogTest, BeginsAnewAfterAStepThatDidNotWait) {
  EXPECT_NE(After(absl::Seconds(5)), "");
  ShardStatus idle = Waiting(absl::Seconds(6));
  idle.current.since.reset();
  EXPECT_EQ(log_.Look(idle), absl::nullopt);
  EXPECT_NE(After(absl::Seconds(7)), "");
}

}  // namespace
}  // namespace sluice

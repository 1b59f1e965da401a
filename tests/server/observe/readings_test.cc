// The words and values that follow from a state.

#include "server/observe/readings.h"

#include <google/protobuf/text_format.h>

#include "common/wire/settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StrEq;

TEST(ReadingsTest, WordsAreThoseOfTheMessages) {
  EXPECT_EQ(PhaseName(v1::WAITING_FOR_WORKERS), "waiting for workers");
  EXPECT_EQ(PhaseName(v1::TRAINING), "training");
  EXPECT_EQ(WarningName(v1::NOT_FINITE), "not_finite");
  EXPECT_EQ(WarningName(v1::TOO_FEW_WORKERS), "too_few_workers");
  v1::OptimizerConfig optimizer;
  EXPECT_EQ(OptimizerName(optimizer), "");
  optimizer.mutable_adamw();
  EXPECT_EQ(OptimizerName(optimizer), "adamw");
}

TEST(ReadingsTest, RulesAreInTheWordsOfTheLog) {
  Consistency rules;
  rules.mode = ConsistencyMode::kBounded;
  rules.max_staleness = 6;
  EXPECT_EQ(ModeName(ToProto(rules)), "bounded");
  EXPECT_EQ(RulesWords(ToProto(rules)), "bounded, quorum 1, max_staleness 6");
  EXPECT_EQ(RulesWords(v1::Consistency()), "unknown");
}

TEST(ReadingsTest, AScheduleIsConstantIfItHasNeitherAWarmUpNorACurve) {
  v1::LearningRateSchedule schedule;
  EXPECT_TRUE(IsConstant(schedule));
  schedule.set_kind(v1::LearningRateSchedule::CONSTANT);
  EXPECT_TRUE(IsConstant(schedule));
  schedule.set_warmup_steps(3);
  EXPECT_FALSE(IsConstant(schedule));
  schedule.set_warmup_steps(0);
  schedule.set_kind(v1::LearningRateSchedule::COSINE);
  schedule.set_total_steps(9);
  EXPECT_FALSE(IsConstant(schedule));
}

TEST(ReadingsTest, EachPushThatIsOverHasOneDisposition) {
  v1::PushCounters pushes;
  pushes.set_received(27);
  pushes.set_accepted(7);
  pushes.set_stale(6);
  pushes.set_skipped(5);
  pushes.set_duplicate(4);
  pushes.set_rejected(3);
  pushes.set_aborted(2);
  EXPECT_THAT(Dispositions(pushes),
              ElementsAre(Pair(StrEq("accepted"), 7), Pair(StrEq("stale"), 6),
                          Pair(StrEq("skipped"), 5), Pair(StrEq("duplicate"), 4),
                          Pair(StrEq("rejected"), 3), Pair(StrEq("aborted"), 2)));
}

TEST(ReadingsTest, StalenessThatDidNotOccurHasNoGradients) {
  v1::Staleness staleness;
  for (const uint32_t number : {2, 32}) {
    v1::StalenessCount& one = *staleness.add_histogram();
    one.set_staleness(number);
    one.set_count(number + 1);
  }
  const std::vector<uint64_t> counts = StalenessCounts(staleness);
  ASSERT_THAT(counts, SizeIs(33));
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[2], 3);
  EXPECT_EQ(counts[32], 33);
}

struct Wait {
  std::string state;
  std::string words;
};

TEST(ReadingsTest, WhoIsAwaitedIsPutInWords) {
  const Wait waits[] = {
      {"", ""},
      {"current { accumulated: 2 required: 3 }", ""},
      {"current { accumulated: 2 required: 3 waiting {} }", "1 more gradient"},
      {"current { accumulated: 1 required: 3 waiting {} }", "2 more gradients"},
      {"current { missing: 1 absent: 1 }", "1 worker still to join"},
      {"current { missing: 2 awaited { worker: 'a' since_last_seen { seconds: 4 } } awaited { "
       "worker: 'b' since_last_seen { nanos: 40000000 } bytes_arrived: 4096 } }",
       "a (last seen 4 s ago), b (last seen 0.04 s ago, 4.1 kB of its push here)"},
      {"current { missing: 2 awaited { worker: 'a' lag: 1 } awaited { worker: 'b' lag: 3 } }",
       "a (last seen 0 s ago), b (last seen 0 s ago, lag 3)"},
      {"current { missing: 1 awaited { worker: 'a\\n\\033[31mE1122' since_last_seen {} } }",
       "a\\n\\033[31mE1122 (last seen 0 s ago)"},
      {"current { missing: 999 absent: 2 awaited { worker: 'a' } awaited { worker: 'b' } awaited { "
       "worker: 'c' } awaited { worker: 'd' } }",
       "a (last seen 0 s ago), b (last seen 0 s ago), c (last seen 0 s ago), 994 more, 2 workers "
       "still to join"},
      {"servers: 3 awaited_server { index: 2 } current { missing: 1 absent: 1 }", "server 2 of 3"},
  };
  for (const Wait& wait : waits) {
    v1::ServerState state;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(wait.state, &state)) << wait.state;
    EXPECT_EQ(AwaitedWords(state), wait.words);
  }
}

TEST(ReadingsTest, BytesAreInTheirUnit) {
  EXPECT_EQ(BytesWords(0), "0 bytes");
  EXPECT_EQ(BytesWords(1), "1 byte");
  EXPECT_EQ(BytesWords(999), "999 bytes");
  EXPECT_EQ(BytesWords(4096), "4.1 kB");
  EXPECT_EQ(BytesWords(123456789), "123 MB");
  EXPECT_EQ(BytesWords(999999), "1.0 MB");
  EXPECT_EQ(BytesWords(UINT64_MAX), "18.4 EB");
}

TEST(ReadingsTest, AStepWaitsForOneServer) {
  v1::ServerState state;
  v1::Server first;
  v1::Server second;
  second.set_index(1);
  EXPECT_FALSE(SecondsAwaited(state, first).has_value());
  state.mutable_awaited_server()->set_index(1);
  state.mutable_awaited_server()->mutable_since()->set_seconds(3);
  EXPECT_FALSE(SecondsAwaited(state, first).has_value());
  EXPECT_EQ(SecondsAwaited(state, second), 3);
}

}  // namespace
}  // namespace sluice

// The screens that sluicectl makes of the server's messages.

#include "tools/ctl/render/status_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/tools/ctl/messages.h"
#include "tools/ctl/render/json.h"
#include "tools/ctl/render/parameters_text.h"
#include "tools/ctl/render/servers_text.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(StatusTextTest, ShowsAllOfAServerOnOneScreen) {
  EXPECT_EQ(
      StatusText(TrainingState(), FourWorkers(), "node7:7070"),
      "job 2515a06c at node7:7070: TRAINING, step 110, incarnation 1, up 15.5 s\n"
      "verdict       SLOW: step 110 has waited 2 s for worker-0\\033\n"
      "rules         sync; mean, in the order of rank; a worker may delay a step for 2.0 s, then "
      "evict\n"
      "optimizer     sgd, learning rate 0.01, schedule cosine\n"
      "rate          16.6 steps/s on average (60.3 ms each); the last was 42.2 ms ago\n"
      "workers       2 present, 1 lost, 1 left, 0 evicted; 1 observer\n"
      "this step     1 of 3 gradients, waiting for 2.2 ms\n"
      "awaited       worker-0 (last seen 0.042 s ago), worker-1 (last seen 1 min 30 s ago, lag "
      "3, 2.0 kB of its push here)\n"
      "pushes        333 received: 331 accepted, 1 stale, 0 skipped, 0 duplicate, 0 rejected, 0 "
      "aborted, 1 in progress\n"
      "staleness     mean 0.50, most 4\n"
      "received      81.9 MB of tensors, 257.8 kB through sockets (0.3 %)\n"
      "sent          81.9 MB of tensors, 0 B through sockets (0.0 %)\n"
      "model         10 tensors, 61706 elements, 246.8 kB\n"
      "measured      step 90: test accuracy\\033 0.876543, test loss 0.5\n"
      "checkpoint    step 100, saved 3.0 s ago\n"
      "warning       the loss rises\\033[2J\n"
      "warning       it stays (over since step 60)\n");
}

TEST(StatusTextTest, ShowsAServerThatWaitsForItsFirstWorker) {
  const auto state = MessageOf<v1::ServerState>(R"(
    job_id: "j" incarnation: 1 phase: WAITING_FOR_WORKERS consistency { mode: ASYNC reduction: MEAN order: ARRIVAL }
    current { required: 1 missing: 2 absent: 2 } uptime { seconds: 1 } staleness {} pushes {})");
  const std::string text = StatusText(state, {}, "unix:/s");
  EXPECT_THAT(text, HasSubstr("job j at unix:/s: WAITING_FOR_WORKERS, step 0,"));
  EXPECT_THAT(text, HasSubstr("\nverdict       none from a server of this version\n"));
  EXPECT_THAT(text, HasSubstr("\noptimizer     not known yet, the first worker brings it\n"));
  EXPECT_THAT(text, HasSubstr("\nrate          no step yet\n"));
  EXPECT_THAT(text, HasSubstr("\nawaited       2 workers still to join\n"));
  EXPECT_THAT(text, HasSubstr("\nreceived      0 B of tensors, 0 B through sockets (-)\n"));
  EXPECT_THAT(text, HasSubstr("\nmeasured      nothing reported to this server process\ncheckpoint "
                              "   none saved by this server process\nwarnings      none\n"));
}

// Those of the first one would look like a compression.
TEST(StatusTextTest, ShowsNoBytesOfSocketsOfSeveralServers) {
  auto state = TrainingState();
  state.set_servers(3);
  const std::string text = StatusText(state, {}, "a:1");
  EXPECT_THAT(text,
              HasSubstr("\nreceived      81.9 MB of tensors\nsent          81.9 MB of tensors\n"));
}

TEST(StatusTextTest, ShowsWhatANewerServerMayAdd) {
  auto state = TrainingState();
  state.set_phase(static_cast<v1::ServerPhase>(99));
  state.mutable_consistency()->set_mode(static_cast<v1::ConsistencyMode>(99));
  EXPECT_THAT(StatusText(state, {}, "a:1"), HasSubstr("\nrules         unknown to this program ("));
}

TEST(StatusTextTest, NamesTheServerThatIsAwaited) {
  auto state = TrainingState();
  state.set_servers(3);
  state.mutable_awaited_server()->set_index(2);
  state.mutable_awaited_server()->mutable_since()->set_seconds(4);
  EXPECT_THAT(StatusText(state, {}, "a:1"),
              HasSubstr("\nawaited       server 2 of 3 (for 4.0 s)\n"));
  EXPECT_THAT(WatchLine(state), HasSubstr(", awaited: server 2 of 3 (for 4.0 s), "));
}

TEST(WatchLineTest, NamesWhoIsAwaitedAndWhichWarningsLast) {
  EXPECT_EQ(WatchLine(TrainingState()),
            "TRAINING step 110: 3 workers, 1 of 3 gradients, waiting for 2.2 ms, awaited: worker-0 "
            "(last seen 0.042 s ago), worker-1 (last seen 1 min 30 s ago, lag 3, 2.0 kB of its "
            "push here), "
            "LOSS_RISES; SLOW\n");
}

TEST(PolicyTextTest, NamesTheRulesAndWhatHasNoEffect) {
  EXPECT_EQ(
      PolicySetText(MessageOf<v1::SetPolicyResponse>(
          R"(step: 9 consistency { mode: SSP slack: 3 reduction: SUM order: ARRIVAL discount_stale: true }
                   ignored: "quorum" ignored: "max_step_wait")")),
      "from step 9 on: ssp, slack 3; sum, in the order of arrival, stale gradients discounted\n"
      "without effect in these rules: quorum, max_step_wait\n");
}

TEST(ServersTextTest, ShowsWhoIsAwaitedAndWhoHasNotCome) {
  EXPECT_EQ(
      ServersText(MessageOf<v1::ListServersResponse>(R"(
                servers { address: "a:1" elements: 500 bytes: 2000 step: 7 connected: true since { seconds: 15 }
                          wire_bytes_received: 14000 wire_bytes_sent: 16000 }
                servers { index: 1 address: "b\033:1" elements: 500 bytes: 2000 step: 6 connected: true since { seconds: 14 }
                          awaited: "to carry out an order of step 8" awaited_since { seconds: 3 } }
                servers { index: 2 address: "c:1" elements: 500 bytes: 2000 since { seconds: 4 }
                          awaited: "to connect again to the first server" awaited_since { seconds: 4 } }
                servers { index: 3 awaited: "to come" })")),
      "SERVER  ADDRESS  CONNECTION        STEP  ELEMENTS    SIZE  RECEIVED     SENT  AWAITED\n"
      "     0  a:1      connected 15.0 s     7       500  2.0 kB   14.0 kB  16.0 kB  -\n"
      "     1  b\\033:1  connected 14.0 s     6       500  2.0 kB       0 B      0 B  to carry out "
      "an order of step 8, for 3.0 s\n"
      "     2  c:1      away 4.0 s           -       500  2.0 kB       0 B      0 B  to connect "
      "again to the first server, for 4.0 s\n"
      "     3  -        not come yet         -         0     0 B       0 B      0 B  to come\n");
}

TEST(ParametersTextTest, ListsTensorsAndTheirSum) {
  EXPECT_EQ(ParametersText(MessageOf<v1::ListParametersResponse>(R"(
                parameters { name: "conv1.weight" shape: 6 shape: 1 shape: 5 shape: 5 kind: PARAMETER length: 150 }
                parameters { name: "bn.mean" shape: 6 kind: STATISTIC offset: 150 length: 6 })")),
            "NAME          SHAPE         ELEMENTS   SIZE  KIND\n"
            "conv1.weight  [6, 1, 5, 5]       150  600 B  parameter\n"
            "bn.mean       [6]                  6   24 B  statistic\n"
            "2 tensors, 156 elements, 624 B\n");
}

TEST(ParameterTextTest, ShowsStatisticsAndValues) {
  EXPECT_EQ(ParameterText(MessageOf<v1::GetParameterResponse>(R"(
                parameter { name: "b" shape: 2 kind: PARAMETER offset: 4 length: 2 } step: 7
                statistics { min: -1 max: 2 mean: 0.5 standard_deviation: 1.5 l2_norm: 2.23607 zero_share: 0.25 }
                values: -1 values: 2)")),
            "b [2] at step 7: 2 elements from 4 on\n"
            "min -1, max 2, mean 0.5, standard deviation 1.5, norm 2.23607, zeros 25.0 %\n"
            "values from 0 on: -1 2\n");
}

TEST(JsonLineTest, HasTheNamesOfTheProtoAndAllFields) {
  const std::string json = JsonLine(TrainingState());
  EXPECT_EQ(JsonAt(json, "jobId"), "2515a06c");
  EXPECT_EQ(JsonAt(json, "lostSteps"), "0");
  EXPECT_EQ(JsonAt(json, "pushes.duplicate"), "0");
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

TEST(JsonLineTest, EscapesWhatATerminalWouldObey) {
  v1::EvictWorkerRequest request;
  request.set_worker("a\x1b[2J\x7f\xc2\x9b");
  EXPECT_EQ(JsonLine(request), "{\"worker\":\"a\\u001b[2J\\u007f\\u009b\"}\n");
}

}  // namespace
}  // namespace sluice

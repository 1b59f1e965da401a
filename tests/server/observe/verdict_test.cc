// What is said of a job, of each kind of state.

#include "server/observe/verdict.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

struct VerdictCase {
  const char* state;  // beyond that of a job of three workers at step 12, which makes 10 steps/s
  v1::Verdict::Kind kind;
  const char* text;
};

constexpr char kTraining[] = R"(
    phase: TRAINING step: 12 servers: 1 workers: 3 expected_workers: 3
    worker_counts { connected: 3 } mean_step_time { nanos: 100000000 } since_last_step { seconds: 1 }
    since_initialized { seconds: 125 } )";

const VerdictCase kCases[] = {
    {"", v1::Verdict::FINE, "training is at step 12, 10 steps/s"},
    {"loss: 0.37812", v1::Verdict::FINE, "training is at step 12, 10 steps/s, loss 0.3781"},
    {"phase: WAITING_FOR_WORKERS worker_counts { connected: 2 }", v1::Verdict::WAITING,
     "training is at step 12 and waits for 1 of 3 workers to join; --start-timeout bounds this"},
    {"phase: WAITING_FOR_WORKERS", v1::Verdict::WAITING,
     "training is at step 12 and waits for workers to join"},
    {"current { missing: 1 waiting { seconds: 4 } awaited { worker: \"b\" } }", v1::Verdict::FINE,
     "training is at step 12, 10 steps/s"},
    {"current { missing: 1 waiting { seconds: 6 } awaited { worker: \"b\" "
     "since_last_seen { seconds: 5 } } }",
     v1::Verdict::SLOW,
     "step 12 has waited 6 s for b (last heard 5 s ago); see the log there. --max-step-wait bounds "
     "such waits"},
    {"mean_step_time { seconds: 2 } current { missing: 1 waiting { seconds: 7 } }",
     v1::Verdict::FINE, "training is at step 12, 0.476 steps/s"},
    {"current { missing: 9 waiting { seconds: 70 } awaited { worker: \"b\" } awaited { worker: "
     "\"c\" } awaited { worker: \"d\" } awaited { worker: \"e\" } }",
     v1::Verdict::SLOW,
     "step 12 has waited 1 min 10 s for b (last heard 0 s ago) and 8 more; see the log there. "
     "--max-step-wait bounds such waits"},
    {"current { stalled { worker: \"b\" since_last_push { seconds: 40 } usual { nanos: 300000000 } "
     "} "
     "stalled { worker: \"c\" } }",
     v1::Verdict::SLOW,
     "b has sent no gradient for 40 s; it usually needs 0.3 s. 1 more is silent. Nobody waits for "
     "such a worker, but see its log"},
    {"since_last_step { seconds: 60 }", v1::Verdict::SLOW,
     "there was no step for 1 min 0 s after step 12; see the workers' logs"},
    {"since_last_step { seconds: 60 } mean_step_time { seconds: 20 }", v1::Verdict::FINE,
     "training is at step 12, 0.0498 steps/s"},
    {"worker_counts { connected: 2 lost: 1 }", v1::Verdict::WORKERS_LOST,
     "1 worker has lost the connection, and may come back within the lease"},
    {"worker_counts { connected: 1 lost: 1 evicted: 2 }", v1::Verdict::WORKERS_LOST,
     "2 workers were lost, and nobody with the name is back; 1 goes on. The log names who it was; "
     "start it again"},
    {"warnings { kind: WORKERS_LATE text: \"late\" }", v1::Verdict::WORKERS_LOST, "late"},
    {"warnings { kind: DOES_NOT_LEARN text: \"it stays\" }", v1::Verdict::NOT_LEARNING, "it stays"},
    {"warnings { kind: DOES_NOT_LEARN over: 9 text: \"it stayed\" }", v1::Verdict::FINE,
     "training is at step 12, 10 steps/s"},
    {"warnings { kind: WENT_BACK text: \"it went back\" }", v1::Verdict::FINE,
     "training is at step 12, 10 steps/s"},
    {"warnings { kind: LOSS_RISES text: \"it rises\" } warnings { kind: WORKERS_LOST text: "
     "\"lost\" }",
     v1::Verdict::DIVERGED, "it rises"},
    {"diverged: true phase: FINISHED", v1::Verdict::DIVERGED,
     "training has diverged, and was ended at step 12"},
    {"servers: 3 awaited_server { index: 2 since { seconds: 4 } }", v1::Verdict::FINE,
     "training is at step 12, 10 steps/s"},
    {"servers: 3 awaited_server { index: 2 since { seconds: 5 } }", v1::Verdict::SERVER_AWAY,
     "step 12 has waited 5 s for server 2 of 3; see its log, or start it again with its flags"},
    {"journal_stopped: true", v1::Verdict::CANNOT_SAVE,
     "pushes are refused at step 12, because the journal cannot be written; make space on the disk "
     "of --checkpoint-dir, and start the server again"},
    {"phase: DRAINING", v1::Verdict::ENDING,
     "the server goes down at step 12, 2 min 4 s after it began"},
    {"phase: FINISHED measurement { results { key: \"test accuracy\" value: 0.85612 } }",
     v1::Verdict::FINISHED,
     "training has finished at step 12, 2 min 4 s after it began, test accuracy 0.8561"},
    {"phase: FINISHED worker_counts { connected: 0 evicted: 3 }", v1::Verdict::WORKERS_LOST,
     "every worker was lost, and training has stopped at step 12, 2 min 4 s after it began; the "
     "log says why"},
    {"phase: FINISHED worker_counts { connected: 0 evicted: 1 left: 2 }", v1::Verdict::FINISHED,
     "training has finished at step 12, 2 min 4 s after it began; 1 worker did not come to the "
     "end"},
};

v1::ServerState StateWith(const std::string& text) {
  v1::ServerState state;
  v1::ServerState more;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kTraining, &state));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &more)) << text;
  state.MergeFrom(more);
  return state;
}

TEST(VerdictTest, IsTheWorstThatIsSeenWithItsSentence) {
  for (const VerdictCase& one : kCases) {
    const v1::Verdict verdict = VerdictOn(StateWith(one.state));
    EXPECT_EQ(v1::Verdict::Kind_Name(verdict.kind()), v1::Verdict::Kind_Name(one.kind))
        << one.state;
    EXPECT_EQ(verdict.text(), one.text) << one.state;
  }
}

TEST(VerdictTest, OfAJobWithoutParametersIsThatItWaits) {
  v1::ServerState state;
  state.set_phase(v1::WAITING_FOR_WORKERS);
  state.set_expected_workers(1);
  EXPECT_EQ(VerdictOn(state).text(),
            "training waits for 1 of 1 worker to join; --start-timeout bounds this");
  state.mutable_worker_counts()->set_connected(1);
  EXPECT_EQ(VerdictOn(state).text(),
            "training waits for the initial parameters, which a worker sends");
}

}  // namespace
}  // namespace sluice

// What is said of a job, of each kind of state.

#include "server/observe/verdict.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

struct VerdictCase {
  const char* state;  // beyond that of a job of three workers at step 12, which makes 10 steps/s
  v1::Verdict::Kind kind;
  std::string text;
};

constexpr char kTraining[] = R"(
    incarnation: 1 phase: TRAINING step: 12 servers: 1 workers: 3 expected_workers: 3
    worker_counts { connected: 3 most: 3 } mean_step_time { nanos: 100000000 }
    since_last_step { seconds: 1 } since_initialized { seconds: 125 } )";

constexpr char kFine[] = "training is at step 12, 10 steps/s";
constexpr char kLost[] =
    " lost; the log and sluicectl workers name who has gone. Start as many again: they can join "
    "while training runs";

const VerdictCase kCases[] = {
    {"", v1::Verdict::FINE, kFine},
    {"loss: 0.37812", v1::Verdict::FINE, "training is at step 12, 10 steps/s, loss 0.378"},
    {"loss: 12345 mean_step_time { nanos: 500000 }", v1::Verdict::FINE,
     "training is at step 12, 2000 steps/s, loss 12345"},
    // Waiting.
    {"phase: WAITING_FOR_WORKERS worker_counts { connected: 2 } since_last_step { seconds: 70 }",
     v1::Verdict::WAITING,
     "training is at step 12 and waits for 1 of 3 workers to join; --start-timeout can bound this"},
    {"phase: WAITING_FOR_WORKERS worker_counts { connected: 2 }", v1::Verdict::FINE,
     "training is at step 12, 10 steps/s; 1 of 3 workers did not join yet"},
    {"phase: WAITING_FOR_WORKERS worker_counts { connected: 0 }", v1::Verdict::WAITING,
     "training is at step 12 and waits for 3 of 3 workers to join; start them"},
    {"phase: WAITING_FOR_WORKERS worker_counts { connected: 0 left: 3 }", v1::Verdict::WAITING,
     "training is at step 12 and waits for workers to join"},
    // Slow.
    {"current { missing: 1 waiting { seconds: 4 } awaited { worker: \"b\" } }", v1::Verdict::FINE,
     kFine},
    {"current { missing: 1 waiting { seconds: 6 } awaited { worker: \"b\" "
     "since_last_seen { seconds: 5 } } }",
     v1::Verdict::SLOW,
     "step 12 has waited 6 s for b (last seen 5 s ago); see the log there. --max-step-wait bounds "
     "such waits"},
    {"mean_step_time { seconds: 2 nanos: 0 } current { missing: 1 waiting { seconds: 7 } }",
     v1::Verdict::FINE, "training is at step 12, 0.476 steps/s"},
    {"current { missing: 9 waiting { seconds: 70 } awaited { worker: \"b\" } awaited { worker: "
     "\"c\" } awaited { worker: \"d\" } awaited { worker: \"e\" } }",
     v1::Verdict::SLOW,
     "step 12 has waited 1 min 10 s for b (last seen 0 s ago), c (last seen 0 s ago), d (last seen "
     "0 s ago), 6 more; see the log there. "
     "--max-step-wait bounds such waits"},
    {"current { stalled_workers: 999 stalled { worker: \"b\" since_last_push { seconds: 40 } usual "
     "{ "
     "nanos: 300000000 } } stalled { worker: \"c\" } }",
     v1::Verdict::SLOW,
     "b has sent no gradient for 40 s; it usually needs 0.3 s. 998 more are silent. Nobody waits "
     "for such a worker, but see its log"},
    {"current { stalled_workers: 1 stalled { worker: \"b\" since_last_push { seconds: 4000 } usual "
     "{ "
     "seconds: 150 } } }",
     v1::Verdict::SLOW,
     "b has sent no gradient for 1 h 6 min; it usually needs 2 min 30 s. Nobody waits for such a "
     "worker, but see its log"},
    {"since_last_step { seconds: 60 }", v1::Verdict::SLOW,
     "there was no step for 1 min 0 s after step 12; see the workers' logs"},
    {"since_last_step { seconds: 60 } mean_step_time { seconds: 20 }", v1::Verdict::FINE,
     "training is at step 12, 0.0498 steps/s"},
    // Lost workers.
    {"worker_counts { connected: 2 lost: 1 }", v1::Verdict::WORKERS_LOST,
     "1 of 3 workers has lost the connection, and may come back within the lease"},
    {"worker_counts { connected: 1 evicted: 2 }", v1::Verdict::WORKERS_LOST,
     absl::StrCat("2 of 3 workers are", kLost)},
    {"worker_counts { connected: 2 evicted: 1 }", v1::Verdict::WORKERS_LOST,
     absl::StrCat("1 of 3 workers is", kLost)},
    {"incarnation: 2 worker_counts { connected: 1 most: 1 away: 2 }", v1::Verdict::WORKERS_LOST,
     absl::StrCat("2 of 3 workers are", kLost)},
    {"worker_counts { connected: 3 evicted: 1 }", v1::Verdict::FINE, kFine},  // another has come
    {"worker_counts { connected: 1 left: 2 most: 1 }", v1::Verdict::FINE, kFine},
    {"worker_counts { connected: 4 most: 5 evicted: 1 }", v1::Verdict::WORKERS_LOST,
     absl::StrCat("1 of 5 workers is", kLost)},
    {"warnings { kind: WORKERS_LATE text: \"late\" }", v1::Verdict::WORKERS_LOST, "late"},
    // Learning.
    {"warnings { kind: DOES_NOT_LEARN text: \"it stays\" }", v1::Verdict::NOT_LEARNING, "it stays"},
    {"warnings { kind: DOES_NOT_LEARN over: 9 text: \"it stayed\" }", v1::Verdict::FINE, kFine},
    {"warnings { kind: WENT_BACK text: \"it went back\" }", v1::Verdict::FINE, kFine},
    {"warnings { kind: LOSS_RISES text: \"it rises\" } warnings { kind: WORKERS_LOST text: "
     "\"lost\" }",
     v1::Verdict::DIVERGED, "it rises"},
    {"diverged: true phase: FINISHED", v1::Verdict::DIVERGED,
     "training has diverged, and was ended at step 12"},
    // The server.
    {"servers: 3 awaited_server { index: 2 since { seconds: 4 } }", v1::Verdict::FINE, kFine},
    {"servers: 3 awaited_server { index: 2 since { seconds: 5 } }", v1::Verdict::SERVER_AWAY,
     "step 12 has waited 5 s for server 2 of 3; see its log, or start it again with its flags"},
    {"journal_stopped: true", v1::Verdict::CANNOT_SAVE,
     "pushes are refused at step 12, because the journal cannot be written; make space on the disk "
     "of --checkpoint-dir; then it goes on by itself"},
    // The end.
    {"phase: DRAINING", v1::Verdict::ENDING,
     "the server was told to end at step 12, 2 min 4 s after it began"},
    {"phase: FINISHED worker_counts { connected: 0 left: 3 }", v1::Verdict::FINISHED,
     "training has finished at step 12, 2 min 4 s after it began"},
    {"phase: FINISHED incarnation: 2 worker_counts { connected: 0 evicted: 1 left: 2 }",
     v1::Verdict::FINISHED,
     "training has finished at step 12, 2 min 4 s after this server went on; 1 worker did not come "
     "to the end"},
    {"phase: FINISHED worker_counts { connected: 0 evicted: 3 }", v1::Verdict::WORKERS_LOST,
     "no worker came to the end, and training has stopped at step 12, 2 min 4 s after it began; "
     "the "
     "log says why"},
};

v1::ServerState StateWith(const std::string& text) {
  v1::ServerState state;
  v1::ServerState more;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kTraining, &state));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &more)) << text;
  if (more.has_worker_counts()) state.clear_worker_counts();  // zeros do not replace others
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

TEST(VerdictTest, BeforeTheFirstStepItsTimeIsNotKnown) {
  v1::ServerState state;
  state.set_phase(v1::WAITING_FOR_WORKERS);
  state.set_expected_workers(1);
  EXPECT_EQ(VerdictOn(state).text(), "training waits for 1 of 1 worker to join; start them");
  state.mutable_worker_counts()->set_connected(1);
  EXPECT_EQ(VerdictOn(state).text(),
            "training waits for the initial parameters, which a worker sends");
  state.set_phase(v1::TRAINING);
  state.mutable_current()->set_missing(1);
  state.mutable_current()->mutable_waiting()->set_seconds(59);
  state.mutable_since_initialized()->set_seconds(299);
  EXPECT_EQ(VerdictOn(state).text(), "training is at step 0");
  state.mutable_since_initialized()->set_seconds(300);
  EXPECT_EQ(VerdictOn(state).text(),
            "no step was made in 5 min 0 s since step 0; see the workers' logs");
  state.mutable_current()->mutable_waiting()->set_seconds(60);
  EXPECT_EQ(VerdictOn(state).text(),
            "step 0 has waited 1 min 0 s for 1 worker; see the log there. --max-step-wait bounds "
            "such waits");
}

}  // namespace
}  // namespace sluice

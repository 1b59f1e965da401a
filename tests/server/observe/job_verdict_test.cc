// The verdict of a job of several models follows from those of its models.

#include "server/observe/job_verdict.h"

#include <google/protobuf/text_format.h>

#include "gtest/gtest.h"

namespace sluice {
namespace {

// A model that a worker has joined, if it has parameters.
v1::ServerState StateOf(const std::string& text) {
  v1::ServerState state;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &state)) << text;
  return state;
}

v1::ServerState Unused() { return StateOf("verdict { kind: WAITING text: 'it waits' }"); }

v1::ServerState At(uint64_t step, v1::Verdict::Kind kind, const std::string& text) {
  v1::ServerState state = StateOf("since_initialized { seconds: 9 } loss: 0.5");
  state.set_step(step);
  state.mutable_verdict()->set_kind(kind);
  state.mutable_verdict()->set_text(text);
  return state;
}

void Expect(const v1::Verdict& verdict, v1::Verdict::Kind kind, const std::string& text) {
  EXPECT_EQ(v1::Verdict::Kind_Name(verdict.kind()), v1::Verdict::Kind_Name(kind));
  EXPECT_EQ(verdict.text(), text);
}

TEST(JobVerdictTest, IsThatOfTheModelWithoutANameIfNoOtherWasJoined) {
  Expect(VerdictOnJob(Unused(), {}), v1::Verdict::WAITING, "it waits");
  Expect(VerdictOnJob(Unused(), {{"critic", Unused()}}), v1::Verdict::WAITING, "it waits");
}

TEST(JobVerdictTest, LeavesOutTheModelWithoutANameIfNobodyHasJoinedIt) {
  Expect(VerdictOnJob(Unused(), {{"critic", At(12, v1::Verdict::FINE, "all is well")}}),
         v1::Verdict::FINE, "model critic: all is well");
}

TEST(JobVerdictTest, SaysWhereModelsAreThatAreAllFine) {
  const auto fine = At(12, v1::Verdict::FINE, "all is well");
  Expect(VerdictOnJob(fine, {{"actor", Unused()}, {"critic", At(7, v1::Verdict::FINE, "well")}}),
         v1::Verdict::FINE,
         "2 models train: the one without a name is at step 12, loss 0.5; critic is at step 7, "
         "loss 0.5");
  std::vector<NamedState> many;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) many.push_back({name, fine});
  Expect(VerdictOnJob(Unused(), many), v1::Verdict::FINE,
         "6 models train: a is at step 12, loss 0.5; b is at step 12, loss 0.5; c is at step 12, "
         "loss 0.5; d is at step 12, loss 0.5; 2 more");
}

TEST(JobVerdictTest, IsTheGravestOfThoseThatGoOn) {
  const NamedState done = {"actor", At(9, v1::Verdict::FINISHED, "it is done")};
  const NamedState slow = {"critic", At(9, v1::Verdict::SLOW, "it is slow")};
  const NamedState fine = {"dreamer", At(9, v1::Verdict::FINE, "it is fine")};
  Expect(VerdictOnJob(Unused(), {done, slow, fine}), v1::Verdict::SLOW, "model critic: it is slow");
  Expect(VerdictOnJob(At(3, v1::Verdict::DIVERGED, "it has diverged"), {done, slow, fine}),
         v1::Verdict::DIVERGED, "it has diverged");
  Expect(VerdictOnJob(Unused(), {done, fine}), v1::Verdict::FINE, "model dreamer: it is fine");
}

// It stays in the phase DRAINING for as long as the server runs.
TEST(JobVerdictTest, LeavesOutAModelThatWasToldToEndWhileOthersGoOn) {
  const NamedState ending = {"actor", At(9, v1::Verdict::ENDING, "it ends")};
  const NamedState stuck = {"critic", At(9, v1::Verdict::CANNOT_SAVE, "it cannot save")};
  const NamedState fine = {"dreamer", At(9, v1::Verdict::FINE, "it is fine")};
  const NamedState done = {"envoy", At(9, v1::Verdict::FINISHED, "it is done")};
  Expect(VerdictOnJob(Unused(), {ending, stuck, fine}), v1::Verdict::CANNOT_SAVE,
         "model critic: it cannot save");
  Expect(VerdictOnJob(Unused(), {ending, fine}), v1::Verdict::FINE, "model dreamer: it is fine");
  Expect(VerdictOnJob(Unused(), {ending, done}), v1::Verdict::ENDING, "model actor: it ends");
}

TEST(JobVerdictTest, IsFinishedWhenAllAre) {
  const auto done = At(9, v1::Verdict::FINISHED, "it is done");
  Expect(VerdictOnJob(Unused(), {{"critic", done}}), v1::Verdict::FINISHED,
         "model critic: it is done");
  Expect(VerdictOnJob(Unused(), {{"actor", done}, {"critic", done}}), v1::Verdict::FINISHED,
         "2 models have finished: actor is at step 9, loss 0.5; critic is at step 9, loss 0.5");
}

// A model that was joined, and has no parameters yet, waits for them.
TEST(JobVerdictTest, CountsAModelThatWaitsForItsParameters) {
  auto waits = Unused();
  waits.mutable_worker_counts()->set_connected(1);
  Expect(VerdictOnJob(Unused(), {{"critic", waits}}), v1::Verdict::WAITING,
         "model critic: it waits");
}

TEST(JobVerdictTest, LeavesAStateAloneWhereNoModelMayHaveAName) {
  v1::ServerState state = Unused();
  JudgeJob(nullptr, &state);
  Expect(state.verdict(), v1::Verdict::WAITING, "it waits");
}

}  // namespace
}  // namespace sluice

// Jobs that diverge: what they say, and how they end.

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kWarning[] = "training diverges since step 101: the loss is 7, but was ";
constexpr char kEnd[] = "the server has ended the job, because training diverges";

// A worker whose loss rises in step 101, and whose job makes 400 steps if nothing ends it earlier.
Words Worker(const Words& flags) {
  return With({RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=400",
               "--gradient=0", "--elements=3", "--bad-from-step=100"},
              flags);
}

std::vector<std::string> CheckpointsIn(const std::string& directory) {
  std::vector<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.rfind("checkpoint-", 0) == 0) saved.push_back(name);
  }
  return saved;
}

TEST(DivergingJobTest, SaysSoOnceInTheLogAndOnceInTheClosingTable) {
  Standalone server({});
  OutputOf(Worker({server.flag()}), 0);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  const std::string& output = server.process().output();
  const auto rows = ClosingRows(output);
  EXPECT_THAT(rows, Contains(Pair("steps", "400"))) << output;
  EXPECT_THAT(rows, Contains(Pair("warning", AllOf(StartsWith(kWarning),
                                                   HasSubstr("; lower the learning rate, which "
                                                             "is 1")))))
      << output;
  EXPECT_THAT(LinesWith(output, kWarning), SizeIs(2)) << output;
}

TEST(DivergingJobTest, EndsWithACodeOfItsOwnIfItShallStopAndOnlyTheServerSaysWhy) {
  const auto job = Mpirun({{3, Worker({"--on-divergence=stop"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(ClosingRows(job->output()), Contains(Pair("warning", StartsWith(kWarning))))
      << job->output();
  EXPECT_THAT(LinesWith(job->output(), kEnd), IsEmpty()) << job->output();
}

TEST(DivergingJobTest, IsNotStartedAgain) {
  const auto job = Mpirun({{3, Worker({"--on-divergence=stop", "--max-restarts=5",
                                       "--checkpoint-dir=" + TestPath("restarts")})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "Sluice job "), SizeIs(1)) << job->output();
}

TEST(DivergingJobTest, LeavesTheCheckpointFromBeforeAndTellsAWorkerThatWasStartedByHand) {
  const std::string directory = TestPath("checkpoints");
  Standalone server({"--on-divergence=stop", "--checkpoint-dir=" + directory});
  const auto worker = Start(Worker({server.flag()}));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(7)) << worker->output();
  EXPECT_THAT(LinesWith(worker->output(), "pushing_worker_program: "),
              ElementsAre(AllOf(HasSubstr(kEnd), HasSubstr("; lower the learning rate"))));
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(7)) << server.process().output();
  EXPECT_THAT(LinesWith(server.process().output(), "no last checkpoint is saved"),
              ElementsAre(AllOf(HasSubstr("diverged since step 101"), HasSubstr(directory))));
  EXPECT_THAT(CheckpointsIn(directory), ElementsAre("checkpoint-000001-000000000000.safetensors"));
}

// ---- A server that goes back ----

// To the first parameters, of which there is always a checkpoint.
Words GoingBack(const std::string& directory, const Words& flags) {
  return With({"--on-divergence=restore", "--lease=30", "--checkpoint-dir=" + directory}, flags);
}

// Each step of a rate R subtracts R. Steps are slow, so that the job is not over when the server
// sees that it diverges.
Words SteadyWorker(const Words& flags, int steps = 1000) {
  return With(
      {RunfilePath("tests/testing/process/pushing_worker_program"), absl::StrCat("--steps=", steps),
       "--gradient=1", "--batch-time=0.002", "--elements=3"},
      flags);
}
const Words kBadWithTheFirstRate = {"--bad-from-step=100", "--bad-above-rate=0.6"};
constexpr char kFinalWithHalfTheRate[] = "parameters at step 1000: -500 to -500";

class GoingBackTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoingBackTest, TheJobGoesOnFromBeforeWithHalfTheLearningRate) {
  const std::string directory = TestPath("back-" + GetParam());
  Standalone server(GoingBack(directory, {"--durability=" + GetParam()}));
  const std::string worker = OutputOf(With(SteadyWorker({server.flag()}), kBadWithTheFirstRate), 0);
  EXPECT_THAT(LinesWith(worker, "parameters at"), ElementsAre(kFinalWithHalfTheRate));
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  const std::string& output = server.process().output();
  EXPECT_THAT(ClosingRows(output),
              Contains(Pair("warning", AllOf(StartsWith("training has gone back from step "),
                                             HasSubstr("000001-000000000000.safetensors, with the "
                                                       "learning rate 0.5 in place of 1, because "
                                                       "training diverges since step 101: ")))))
      << output;
}

INSTANTIATE_TEST_SUITE_P(All, GoingBackTest, ::testing::Values("memory", "journal"),
                         [](const auto& test) { return test.param; });

TEST(GoingBackWithoutWorkersTest, DoesNotWaitForOneThatWasLostBefore) {
  Standalone server(GoingBack(TestPath("one-left"), {"--workers=2", "--lease=2"}));
  const auto lost = Start(SteadyWorker({server.flag(), "--stop-at-step=20", "--die"}));
  const std::string worker = OutputOf(With(SteadyWorker({server.flag()}), kBadWithTheFirstRate), 0);
  EXPECT_THAT(LinesWith(worker, "parameters at"), ElementsAre(kFinalWithHalfTheRate));
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
}

TEST(GoingBackWithoutWorkersTest, EndsIfNobodyComesBack) {
  Standalone server(GoingBack(TestPath("nobody"), {"--lease=2"}));
  const auto worker = Start(With(SteadyWorker({server.flag()}, 100'000), kBadWithTheFirstRate));
  EXPECT_THAT(server.process().WaitForOutput("training has gone back"), IsOk());
  worker->Signal(SIGKILL);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(3)) << server.process().output();
}

TEST(GoingBackInVainTest, EndsTheJobAfterTheThirdTime) {
  Standalone server(GoingBack(TestPath("in-vain"), {}));
  const auto worker = Start(SteadyWorker({server.flag(), "--bad-from-step=200"}));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(7)) << worker->output();
  EXPECT_THAT(LinesWith(worker->output(), "pushing_worker_program: "),
              ElementsAre(AllOf(HasSubstr(kEnd), HasSubstr("the learning rate, which is 0.125"),
                                HasSubstr("; the server has gone back 3 times"))));
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(7)) << server.process().output();
  EXPECT_THAT(LinesWith(server.process().output(), "the job ends: the server has gone back"),
              SizeIs(1));
}

// ---- Programs of one's own ----

// With a learning rate that makes its parameters explode, and with these flags of Sluice.
Words Example(const Words& flags) {
  Words words = {RunfilePath("worker/torch/examples/example"), "100000"};
  for (const std::string& flag : flags) words.push_back("--sluice-" + flag.substr(2));
  return words;
}

TEST(DivergingProgramTest, OfOnesOwnEndsWithTheSameCode) {
  const auto job = Mpirun({{3, Example({"--on-divergence=stop"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "terminate called"), IsEmpty()) << job->output();
}

TEST(DivergingProgramTest, OfOnesOwnIsNotStartedAgain) {
  const auto job = Mpirun({{3, Example({"--on-divergence=stop", "--max-restarts=5",
                                        "--checkpoint-dir=" + TestPath("restarts")})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "Sluice job "), SizeIs(1)) << job->output();
}

TEST(DivergingProgramTest, OfOnesOwnThatWasStartedByHandSaysWhy) {
  Standalone server({"--on-divergence=stop"});
  const auto worker = Start(Example({server.flag()}));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(7)) << worker->output();
  EXPECT_THAT(LinesWith(worker->output(), kEnd), SizeIs(1)) << worker->output();
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(7)) << server.process().output();
}

}  // namespace
}  // namespace sluice

// A job with a learning rate of 1000, in which nothing is learned: what it says, and how it ends.

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kWarning[] = "training diverges since step";

class DivergingJobTest : public ::testing::Test {
 protected:
  // 400 steps, if nothing ends it earlier.
  Words Train(const Words& flags) const {
    return With({RunfilePath("worker/sluice_train"), "--model=mlp", "--progress=off",
                 "--learning-rate=1000", "--skip-not-finite", "--epochs=1000", "--max-steps=400",
                 "--no-test", "--data-dir=" + data_},
                flags);
  }

  const std::string data_ = WriteEasyData(TestPath("data"), 20 * 2 * 32, 100);
};

TEST_F(DivergingJobTest, SaysSoOnceInTheLogAndOnceInTheClosingTable) {
  Standalone server({"--skip-not-finite"});
  OutputOf(Train({server.flag()}), 0);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  const std::string& output = server.process().output();
  const auto rows = ClosingRows(output);
  EXPECT_EQ(rows.at("steps"), "400") << output;
  EXPECT_THAT(rows.at("warning"),
              AllOf(StartsWith(kWarning), HasSubstr("; lower the learning rate, which is 1000")));
  EXPECT_THAT(LinesWith(output, kWarning), SizeIs(2)) << output;
}

TEST_F(DivergingJobTest, EndsWithACodeOfItsOwnIfItShallStopAndOnlyTheServerSaysWhy) {
  const auto job = Mpirun({{3, Train({"--on-divergence=stop"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(ClosingRows(job->output()).at("warning"), StartsWith(kWarning));
  EXPECT_THAT(LinesWith(job->output(), "sluice_train: "), IsEmpty()) << job->output();
}

TEST_F(DivergingJobTest, IsNotStartedAgain) {
  const auto job = Mpirun({{3, Train({"--on-divergence=stop", "--max-restarts=5",
                                      "--checkpoint-dir=" + TestPath("restarts")})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(7)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "Sluice job "), SizeIs(1)) << job->output();
}

TEST_F(DivergingJobTest, LeavesTheCheckpointFromBeforeAndTellsAWorkerThatWasStartedByHand) {
  const std::string directory = TestPath("checkpoints");
  Standalone server({"--on-divergence=stop", "--skip-not-finite", "--checkpoint-dir=" + directory});
  const auto worker = Start(Train({server.flag()}));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(7)) << worker->output();
  EXPECT_THAT(
      LinesWith(worker->output(), "sluice_train: "),
      ElementsAre(AllOf(HasSubstr("the server has ended the job, because training diverges"),
                        HasSubstr("; lower the learning rate"))));
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(7)) << server.process().output();
  EXPECT_THAT(LinesWith(server.process().output(), "no last checkpoint is saved"), SizeIs(1));
  std::vector<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.rfind("checkpoint-", 0) == 0) saved.push_back(name);
  }
  EXPECT_THAT(saved, ElementsAre("checkpoint-000001-000000000000.safetensors"));
}

}  // namespace
}  // namespace sluice

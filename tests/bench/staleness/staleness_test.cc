// The program that trains models in virtual time.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// The fields of the line that tells of the run.
std::map<std::string, std::string> Train(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {RunfilePath("tools/bench/staleness/staleness_main")};
  command.insert(command.end(), flags.begin(), flags.end());
  const auto run = Start(command);
  EXPECT_THAT(run->Wait(kMeasurement), IsOkAndHolds(0)) << run->output();
  std::map<std::string, std::string> fields;
  for (const absl::string_view line : absl::StrSplit(run->output(), '\n')) {
    if (!absl::StartsWith(line, "model=")) continue;
    for (const absl::string_view field : absl::StrSplit(line, ' ')) {
      const std::pair<std::string, std::string> named =
          absl::StrSplit(field, absl::MaxSplits('=', 1));
      fields.insert(named);
    }
  }
  return fields;
}

const std::vector<std::string> kLeNet = {"--batches=36", "--batch-size=16", "--learning-rate=0.05",
                                         "--momentum=0.9"};

std::vector<std::string> LeNet(const std::vector<std::string>& flags) {
  std::vector<std::string> all = kLeNet;
  all.insert(all.end(), flags.begin(), flags.end());
  return all;
}

TEST(StalenessTest, RepeatsToTheBitAndFollowsFromTheSeed) {
  auto first = Train(LeNet({"--mode=async", "--workers=6", "--seed=7"}));
  auto same = Train(LeNet({"--mode=async", "--workers=6", "--seed=7"}));
  auto other = Train(LeNet({"--mode=async", "--workers=6", "--seed=8"}));
  EXPECT_EQ(first["steps"], "36");
  first.erase("wall");
  same.erase("wall");
  EXPECT_EQ(same, first);
  EXPECT_NE(other["crc"], first["crc"]);
}

// Virtual workers in sync mode compute what processes under mpirun compute.
TEST(StalenessTest, SyncEndsWithTheBitsOfRealProcesses) {
  const auto job = Mpirun(
      {{4,
        {RunfilePath("worker/sluice_train"), "--max-steps=12", "--batch-size=16",
         "--learning-rate=0.05", "--momentum=0.9", "--seed=7", "--progress=off", "--no-test"}}});
  ASSERT_THAT(job->Wait(kMeasurement), IsOkAndHolds(0)) << job->output();
  auto run = Train(LeNet({"--mode=sync", "--workers=3", "--compute=constant", "--seed=7"}));
  EXPECT_EQ(run["steps"], "12");
  EXPECT_EQ(run["crc"], ClosingRows(job->output())["parameters' CRC-32"]);
}

TEST(StalenessTest, TrainsWithLocalSteps) {
  auto run = Train(LeNet({"--mode=sync", "--workers=3", "--local-steps=4"}));
  EXPECT_EQ(run["steps"], "3");
  EXPECT_EQ(run["local_steps"], "4");
}

TEST(StalenessTest, TrainsTheTransformerWithAdam) {
  auto run = Train({"--model=transformer", "--optimizer=adam", "--mode=async", "--workers=4",
                    "--batches=8", "--batch-size=4"});
  EXPECT_EQ(run["steps"], "8");
  EXPECT_EQ(run["model"], "transformer");
}

TEST(StalenessTest, SaysWhatIsWrongWithAFlag) {
  for (const auto& [flag, said] : std::map<std::string, std::string>{
           {"--compute=gamma", "--compute is \"gamma\""},
           {"--mode=lazy", "lazy"},
           {"--max-step-wait=1", "--max-step-wait is given"},
           {"--batch-size=70000", "the dataset has 60000 rows"},
       }) {
    const auto run = Start({RunfilePath("tools/bench/staleness/staleness_main"), flag});
    EXPECT_THAT(run->Wait(kMeasurement), IsOkAndHolds(2)) << flag;
    EXPECT_THAT(run->output(), HasSubstr(said));
  }
}

}  // namespace
}  // namespace sluice

// What sluice_train --pace prints.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Words Train(const std::string& role) {
  return {RunfilePath("worker/sluice_train"),
          "--role=" + role,
          "--max-steps=3",
          "--progress=off",
          "--pace",
          "--no-test"};
}

TEST(PaceTest, TellsThePaceOfOneProcess) {
  const auto train = Start(Train("single"));
  EXPECT_THAT(train->Wait(kMeasurement), IsOkAndHolds(0)) << train->output();
  EXPECT_THAT(
      LinesWith(train->output(), "pace"),
      ElementsAre(ContainsRegex("^pace [0-9]+\\.[0-9] images/s  0\\.0 % outside compute$")));
  EXPECT_THAT(LinesWith(train->output(), "test accuracy"), IsEmpty());
}

TEST(PaceTest, TellsThePaceOfOneWorkerOfAJob) {
  const auto job = Mpirun({{3, Train("job")}});
  EXPECT_THAT(job->Wait(kMeasurement), IsOkAndHolds(0)) << job->output();
  EXPECT_THAT(
      LinesWith(job->output(), "pace"),
      ElementsAre(ContainsRegex("pace [0-9]+\\.[0-9] images/s  [0-9.]+ % outside compute$")));
  EXPECT_THAT(LinesWith(job->output(), "test accuracy"), IsEmpty());
  EXPECT_EQ(Counters(job->output()), "3 steps, 6 received: 6 accepted");
}

}  // namespace
}  // namespace sluice

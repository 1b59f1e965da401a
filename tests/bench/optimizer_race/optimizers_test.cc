// The race of optimizers, small: that both sides of every race come to the same parameters.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(OptimizersTest, RaceEveryOptimizer) {
  for (const char* shape : {"--threads=1", "--layers"}) {
    const auto race = Start({RunfilePath("tools/bench/optimizer_race/optimizers_main"),
                             "--elements=20000", "--rounds=2", shape});
    EXPECT_THAT(race->Wait(absl::Seconds(120)), IsOkAndHolds(0)) << race->output();
    for (const char* name : {"sgd ", "sgd-momentum ", "adam ", "adam-amsgrad ", "adamw ",
                             "adagrad ", "rmsprop ", "rmsprop-all ", "lamb "}) {
      EXPECT_THAT(race->output(), HasSubstr(std::string("\n") + name)) << race->output();
    }
  }
}

TEST(OptimizersTest, KnowsNoOthers) {
  const auto race =
      Start({RunfilePath("tools/bench/optimizer_race/optimizers_main"), "--only=lion"});
  EXPECT_THAT(race->Wait(), IsOkAndHolds(2));
}

}  // namespace
}  // namespace sluice

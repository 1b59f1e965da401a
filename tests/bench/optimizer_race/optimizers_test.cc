// The race of optimizers, small: that both sides of every race come to the same parameters.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/optimizer_options.h"
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
    std::vector<std::string> names = {"sgd-momentum", "adam-amsgrad", "rmsprop-all"};
    for (const OptimizerOptions& options : AllOptimizers()) {
      if (WorkersStep(options) || IsOfProgram(options)) continue;
      names.emplace_back(OptimizerName(options));
    }
    for (const std::string& name : names) {
      EXPECT_THAT(race->output(), HasSubstr(absl::StrCat("\n", name, " "))) << race->output();
    }
  }
}

TEST(OptimizersTest, KnowsNoOthers) {
  const auto race =
      Start({RunfilePath("tools/bench/optimizer_race/optimizers_main"), "--only=no-optimizer"});
  EXPECT_THAT(race->Wait(), IsOkAndHolds(2));
}

}  // namespace
}  // namespace sluice

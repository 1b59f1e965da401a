#include "tools/bench/harness/gradient.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the synthetic_gradient of tools/bench/peers/participant.py has them.
TEST(GradientTest, HasTheValuesThatThePythonPeersHave) {
  EXPECT_THAT(SyntheticGradient(4),
              ElementsAre(0.0f, 0x1.4538a2p-10f, 0x1.87a618p-11f, -0x1.e83d3p-10f));
}

TEST(GradientTest, HardlyRepeatsItself) {
  const std::vector<float> gradient = SyntheticGradient(100000);
  EXPECT_GT(std::set<float>(gradient.begin(), gradient.end()).size(), 99000u);
  EXPECT_LT(*std::max_element(gradient.begin(), gradient.end()), 1.0f / 512);
  EXPECT_GE(*std::min_element(gradient.begin(), gradient.end()), -1.0f / 512);
}

TEST(GradientTest, AcceptsWhatSgdMakesAndNothingElse) {
  const std::vector<float> gradient = SyntheticGradient(100);
  std::vector<float> parameters(gradient.size());
  for (int step = 0; step < 3; ++step) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      parameters[i] -= static_cast<float>(kLearningRate) * gradient[i];
    }
  }
  EXPECT_THAT(CheckParameters(gradient, 3, parameters), IsOk());
  EXPECT_THAT(CheckParameters(gradient, 4, parameters),
              HasCode(absl::StatusCode::kInternal, HasSubstr("element 1 is")));
  std::swap(parameters[40], parameters[41]);
  EXPECT_THAT(CheckParameters(gradient, 3, parameters),
              HasCode(absl::StatusCode::kInternal, HasSubstr("element 40 is")));
}

}  // namespace
}  // namespace sluice::bench

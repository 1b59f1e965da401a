#include "tools/bench/rounds/plain_sgd.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(PlainSgdTest, SubtractsTheSumInEveryBlock) {
  const std::vector<float> ones(10000, 1), twos(10000, 2);
  std::vector<float> parameters(10000, 10);
  ApplySgd({ones.data(), twos.data()}, 0.5f, absl::MakeSpan(parameters));
  EXPECT_THAT(parameters, Each(8.5f));
}

TEST(PlainSgdTest, TakesAStepWithTheMeanOnceAllHaveCome) {
  PlainSgd sgd(2, 2);
  const std::vector<float> first = {64, 0}, second = {0, 128};
  std::thread other([&] { EXPECT_TRUE(sgd.Step(second)); });
  EXPECT_TRUE(sgd.Step(first));
  other.join();
  EXPECT_THAT(sgd.parameters(), ElementsAre(-0.5f, -1.0f));
}

TEST(PlainSgdTest, EndsTheWaitForAWorkerThatHasLeft) {
  PlainSgd sgd(1, 2);
  std::thread other([&] { EXPECT_FALSE(sgd.Step({1})); });
  sgd.Leave();
  other.join();
  EXPECT_THAT(sgd.parameters(), ElementsAre(0));
}

}  // namespace
}  // namespace sluice::bench

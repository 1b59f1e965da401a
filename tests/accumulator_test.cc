#include "server/accumulator.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

StagedVector Gradient(const Values& values) {
  StagedVector gradient(std::make_shared<const Layout>(ParametersOnly(values.size())));
  EXPECT_THAT(gradient.Add(ChunkOf(0, values)), IsOk());
  return gradient;
}

TEST(AccumulatorTest, StartsWithNoGradient) { EXPECT_EQ(Accumulator(3).count(), 0u); }

TEST(AccumulatorTest, SumsAndCountsGradients) {
  Accumulator accumulator(3);
  accumulator.Add(Gradient({1, 2, 3}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(1, 2, 3));
  accumulator.Add(Gradient({10, 20, 30}));
  accumulator.Add(Gradient({100, 200, 300}));
  EXPECT_EQ(accumulator.count(), 3u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(111, 222, 333));
}

TEST(AccumulatorTest, StartsAnewWhenCleared) {
  Accumulator accumulator(2);
  accumulator.Add(Gradient({1, 2}));
  accumulator.Add(Gradient({1, 2}));
  accumulator.Clear();
  EXPECT_EQ(accumulator.count(), 0u);
  accumulator.Add(Gradient({5, 6}));
  EXPECT_EQ(accumulator.count(), 1u);
  EXPECT_THAT(accumulator.sum(), ElementsAre(5, 6));
}

TEST(AccumulatorTest, TakesAGradientInPieces) {
  Accumulator accumulator(3);
  StagedVector pieces(std::make_shared<const Layout>(ParametersOnly(3)));
  ASSERT_THAT(pieces.Add(ChunkOf(1, {2, 3})), IsOk());
  ASSERT_THAT(pieces.Add(ChunkOf(0, {1})), IsOk());
  accumulator.Add(pieces);
  accumulator.Add(pieces);
  EXPECT_THAT(accumulator.sum(), ElementsAre(2, 4, 6));
}

}  // namespace
}  // namespace sluice

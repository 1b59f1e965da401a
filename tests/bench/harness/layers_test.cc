#include "tools/bench/harness/layers.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::SizeIs;

uint64_t Sum(const std::vector<uint64_t>& layers) {
  return std::accumulate(layers.begin(), layers.end(), uint64_t{0});
}

TEST(LayersTest, AreTheModelsOfTheLiterature) {
  EXPECT_THAT(LeNetLayers(), ElementsAre(500, 20, 25000, 50, 400000, 500, 5000, 10));
  EXPECT_EQ(Sum(LeNetLayers()), 431080u);
  EXPECT_THAT(ResNet18Layers(), SizeIs(62));
  EXPECT_EQ(Sum(ResNet18Layers()), 11173962u);
  EXPECT_THAT(ResNet50Layers(), SizeIs(161));
  EXPECT_EQ(Sum(ResNet50Layers()), 25557032u);
}

TEST(LayersTest, OfAModelsOwnSizeAreTheModels) {
  EXPECT_EQ(LayersOf(431080), LeNetLayers());
  EXPECT_EQ(LayersOf(11173962), ResNet18Layers());
  EXPECT_EQ(LayersOf(25557032), ResNet50Layers());
}

TEST(LayersTest, AddUpToTheVectorAndAreNeverEmpty) {
  for (const uint64_t elements : {1u, 7u, 1000u, 425000u, 11175000u, 25500000u, 200000000u}) {
    EXPECT_EQ(Sum(LayersOf(elements)), elements);
    EXPECT_THAT(LayersOf(elements), Each(Gt(0u)));
  }
}

TEST(LayersTest, KeepTheNumberOfArraysOfTheNearestModel) {
  EXPECT_THAT(LayersOf(425000), SizeIs(8));
  EXPECT_THAT(LayersOf(11175000), SizeIs(62));
  EXPECT_THAT(LayersOf(25500000), SizeIs(161));
}

TEST(LayersTest, AreCutInProportion) {
  EXPECT_THAT(LayersOf(2 * 431080), ElementsAre(1000, 40, 50000, 100, 800000, 1000, 10000, 20));
}

}  // namespace
}  // namespace sluice::bench

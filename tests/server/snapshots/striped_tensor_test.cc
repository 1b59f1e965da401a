#include "server/snapshots/striped_tensor.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

// Units of 64: "a" ends within the first one, "c" has a part of a unit at both ends.
const Layout& TheLayout() {
  static const Layout& layout = *new Layout(LayoutOf({{"a", 10}, {"b", 100}, {"c", 900}}));
  return layout;
}

Values Parameters() {
  Values values(TheLayout().size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 / (static_cast<float>(i) - 300.5f);
  return values;
}

// Of a stripe of the vector.
Values StripeOf(const Stripes& stripes, uint32_t stripe, const Values& vector) {
  Values part(stripes.SizeOf(stripe));
  for (uint64_t i = 0; i < part.size(); ++i) part[i] = vector[stripes.InVector(stripe, i)];
  return part;
}

// What all stripes tell. Each part has the sizes that are expected of it.
std::vector<TensorPart> PartsOf(const StripedTensor& tensor, const Stripes& stripes) {
  std::vector<TensorPart> parts;
  for (uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    parts.push_back(tensor.Read(stripe, StripeOf(stripes, stripe, Parameters())));
    EXPECT_EQ(parts.back().units.size(), tensor.UnitsIn(stripe));
    EXPECT_EQ(parts.back().values.size(), tensor.ValuesIn(stripe));
  }
  return parts;
}

TensorStatistics StatisticsOf(uint32_t tensor, uint32_t servers) {
  const Stripes stripes(TheLayout().size(), servers);
  const StripedTensor striped(TheLayout(), stripes, {tensor, 0, 0});
  return striped.Combine(PartsOf(striped, stripes));
}

TEST(StripedTensorTest, HasTheSameBitsWithAnyNumberOfStripes) {
  for (const uint32_t tensor : {0, 1, 2}) {
    const TensorStatistics alone = StatisticsOf(tensor, 1);
    for (const uint32_t servers : {2, 3, 4, 20}) {
      const TensorStatistics striped = StatisticsOf(tensor, servers);
      EXPECT_EQ(striped.min, alone.min);
      EXPECT_EQ(striped.max, alone.max);
      EXPECT_EQ(striped.mean, alone.mean);
      EXPECT_EQ(striped.standard_deviation, alone.standard_deviation);
      EXPECT_EQ(striped.l2_norm, alone.l2_norm);
      EXPECT_EQ(striped.zero_share, alone.zero_share);
    }
  }
}

TEST(StripedTensorTest, JoinsTheValuesInTheirOrder) {
  const Values parameters = Parameters();
  const Values asked(parameters.begin() + 110 + 15, parameters.begin() + 110 + 215);
  for (const uint32_t servers : {1, 2, 3, 20}) {
    const Stripes stripes(TheLayout().size(), servers);
    const StripedTensor tensor(TheLayout(), stripes, {2, 15, 200});
    EXPECT_EQ(tensor.Join(PartsOf(tensor, stripes)), asked) << servers;
  }
}

TEST(StripedTensorTest, StripesWithoutElementsOfItHaveEmptyParts) {
  const Stripes stripes(TheLayout().size(), 3);
  ASSERT_EQ(stripes.unit(), 64u);
  const StripedTensor tensor(TheLayout(), stripes, {0, 8, 2});
  EXPECT_EQ(tensor.elements(), 10u);
  const std::vector<TensorPart> parts = PartsOf(tensor, stripes);
  EXPECT_EQ(parts[0].units.size(), 1u);
  EXPECT_EQ(parts[1].units.size(), 0u);
  EXPECT_EQ(parts[2].units.size(), 0u);
  EXPECT_THAT(tensor.Join(parts), ElementsAre(Parameters()[8], Parameters()[9]));
}

}  // namespace
}  // namespace sluice

#include "server/aggregation/parameter_sample.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::SizeIs;

Values Sampled(const Layout& layout, const Values& parameters) {
  Values values;
  ParameterSample(layout).Read(parameters, &values);
  return values;
}

TEST(ParameterSampleTest, HasAllOfASmallModelButItsStatistics) {
  const Layout layout = LayoutOf({{"a", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}});
  EXPECT_THAT(Sampled(layout, {1, 2, 3, 4, 5}), ElementsAre(1, 2, 5));
}

TEST(ParameterSampleTest, IsNoLargerThanItsSize) {
  const uint32_t size = 10 * ParameterSample::kSize + 17;
  EXPECT_THAT(Sampled(ParametersOnly(size), Values(size, 1)), SizeIs(ParameterSample::kSize));
}

TEST(ParameterSampleTest, ItsNormIsThatOfItsValues) {
  const Layout layout = LayoutOf({{"a", 2}, {"mean", 1, RangeKind::kStatistic}});
  EXPECT_EQ(ParameterSample(layout).Norm(Values{3, 4, 100}), 5);
}

TEST(ParameterSampleTest, TheNormOfTheLargestFloatsIsFinite) {
  EXPECT_THAT(ParameterSample(ParametersOnly(4)).Norm(Values(4, 3e38F)), DoubleNear(6e38, 1e32));
}

}  // namespace
}  // namespace sluice

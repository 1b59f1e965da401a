#include "server/aggregation/parameter_sample.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// The stripe's part of `values`, element by element.
Values StripeOf(const Stripes& stripes, uint32_t stripe, const Values& values) {
  Values part(stripes.SizeOf(stripe));
  for (uint64_t i = 0; i < part.size(); ++i) part[i] = values[stripes.InVector(stripe, i)];
  return part;
}

Values Sampled(const Layout& layout, const Values& parameters, uint32_t count = 1) {
  const Stripes stripes(layout.size(), count);
  const ParameterSample sample(layout, stripes);
  std::vector<Values> parts;
  for (uint32_t i = 0; i < count; ++i) {
    parts.push_back(sample.Read(i, StripeOf(stripes, i, parameters)));
  }
  return sample.Join(parts);
}

TEST(ParameterSampleTest, HasAllOfASmallModelButItsStatistics) {
  const Layout layout = LayoutOf({{"a", 2}, {"mean", 2, RangeKind::kStatistic}, {"b", 1}});
  EXPECT_THAT(Sampled(layout, {1, 2, 3, 4, 5}), ElementsAre(1, 2, 5));
}

TEST(ParameterSampleTest, IsNoLargerThanItsSize) {
  const uint32_t size = 10 * ParameterSample::kSize + 17;
  EXPECT_THAT(Sampled(ParametersOnly(size), Values(size, 1)), SizeIs(ParameterSample::kSize));
}

// Some of any sixteenth of the model is in it.
TEST(ParameterSampleTest, IsSpreadOverTheWholeModel) {
  const uint32_t size = 64 * 1024;
  for (uint32_t begin = 0; begin < size; begin += size / 16) {
    Values marked(size, 0);
    std::fill_n(marked.begin() + begin, size / 16, 1.0f);
    const Values sample = Sampled(ParametersOnly(size), marked);
    EXPECT_EQ(std::accumulate(sample.begin(), sample.end(), 0.0), ParameterSample::kSize / 16.0);
  }
}

// Blocks of the sample begin after statistics of odd sizes, and so lie across the ends of units.
TEST(ParameterSampleTest, IsTheSameHoweverManyStripesReadIt) {
  const Layout layout = LayoutOf({{"a", 20011},
                                  {"mean", 7, RangeKind::kStatistic},
                                  {"b", 50003},
                                  {"more", 101, RangeKind::kStatistic},
                                  {"c", 3}});
  Values parameters(layout.size());
  std::iota(parameters.begin(), parameters.end(), 1.0f);
  const Values whole = Sampled(layout, parameters);
  EXPECT_THAT(whole, SizeIs(ParameterSample::kSize));
  for (const uint32_t count : {2, 3, 4, 7}) EXPECT_EQ(Sampled(layout, parameters, count), whole);
}

}  // namespace
}  // namespace sluice

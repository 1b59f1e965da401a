#include "server/snapshots/snapshot_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/parallel.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

Snapshot SnapshotOf(uint64_t step, const Values& values) {
  Snapshot snapshot;
  snapshot.step = Step(step);
  snapshot.values = FloatBuffer(values.size());
  std::copy(values.begin(), values.end(), snapshot.values.span().begin());
  return snapshot;
}

Values Parameters(size_t size) {
  Values values(size);
  for (size_t i = 0; i < size; ++i) values[i] = std::sin(static_cast<float>(i));
  return values;
}

Values Decoded(const std::vector<SnapshotPart>& parts, size_t size) {
  Values values(size, 4711);
  for (const SnapshotPart& part : parts) {
    const auto floats = part.floats.values;
    std::copy(floats.begin(), floats.end(), values.begin() + part.offset);
    if (!part.encoded.has_value()) continue;
    EXPECT_THAT(DecodeValues(*part.encoded,
                             absl::MakeSpan(values).subspan(part.offset, part.encoded->how.count),
                             BuiltinTransforms()),
                IsOk());
  }
  return values;
}

// A layout with one tensor of parameters and one of statistics.
class SnapshotEncoderTest : public ::testing::Test {
 protected:
  Values Pull(SnapshotEncoder& encoder, uint64_t step, const Values& values) {
    return Decoded(encoder.Encode(SnapshotOf(step, values), serial_), values.size());
  }

  const Layout layout_ = LayoutOf({{"w", 300000}, {"mean", 100, RangeKind::kStatistic}});
  const Values values_ = Parameters(300100);
  const TransformRegistry transforms_ = BuiltinTransforms();
  Serial serial_;
};

TEST_F(SnapshotEncoderTest, LosslessOnesGiveBackEveryBit) {
  SnapshotEncoder encoder(layout_, *ParseEncoding("float32/planes/zstd"), transforms_);
  EXPECT_EQ(Pull(encoder, 1, values_), values_);
  EXPECT_EQ(Pull(encoder, 2, values_), values_);
}

TEST_F(SnapshotEncoderTest, StatisticsAreSentAsTheyAre) {
  SnapshotEncoder encoder(layout_, *ParseEncoding("sign"), transforms_);
  const Values pulled = Pull(encoder, 1, values_);
  EXPECT_TRUE(std::equal(pulled.begin() + 300000, pulled.end(), values_.begin() + 300000));
  EXPECT_FALSE(std::equal(pulled.begin(), pulled.begin() + 300000, values_.begin()));
}

// Otherwise a value is rounded to the same side in each step, and workers never see its mean.
TEST_F(SnapshotEncoderTest, EachStepDrawsRandomNumbersOfItsOwn) {
  const auto first_pull_in = [this](uint64_t step) {
    SnapshotEncoder encoder(layout_, *ParseEncoding("int8:stochastic"), transforms_);
    return Pull(encoder, step, values_);
  };
  EXPECT_EQ(first_pull_in(1), first_pull_in(1));
  EXPECT_NE(first_pull_in(1), first_pull_in(2));
}

// A parameter between two values of the encoding alternates between them.
TEST_F(SnapshotEncoderTest, OnAverageWorkersSeeWhatTheServerHas) {
  SnapshotEncoder encoder(layout_, *ParseEncoding("bfloat16"), transforms_);
  constexpr int kSteps = 64;
  std::vector<double> sums(values_.size());
  double worst_once = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const Values pulled = Pull(encoder, step, values_);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += pulled[i];
    if (step > 1) continue;
    for (size_t i = 0; i < sums.size(); ++i) {
      worst_once = std::max<double>(worst_once, std::fabs(pulled[i] - values_[i]));
    }
  }
  double worst_mean = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    worst_mean = std::max(worst_mean, std::fabs(sums[i] / kSteps - values_[i]));
  }
  EXPECT_GT(worst_once, 1e-3);
  EXPECT_LT(worst_mean, 2 * worst_once / kSteps);
}

// A stripe has no whole rows, so low-rank sends float32, in chunks that are not too large.
TEST_F(SnapshotEncoderTest, AStripeOfALargeMatrixComesExactlyInLowRank) {
  const Layout whole = *Layout::Create({{"w", {1000, 1000}, {}, {}, 0, 1000000}});
  const Layout stripe = whole.OfStripe(Stripes(whole.size(), 2), 0);
  ASSERT_GT(stripe.size(), kMostEncoded);
  SnapshotEncoder encoder(stripe, *ParseEncoding("low-rank:2"), transforms_);
  const Values values = Parameters(stripe.size());
  EXPECT_TRUE(Pull(encoder, 1, values) == values);
}

}  // namespace
}  // namespace sluice

#include "tools/ping/recommendation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMebi = uint64_t{1} << 20;
constexpr uint64_t kElements = 4 * kMebi;  // 16 MiB in 16 chunks
constexpr uint64_t kPlain = kElements * sizeof(float);

constexpr double kSlow = 16.0 * kMebi;  // bytes per second: 1 s for the model

PricedEncoding Plain() { return {"float32", {kPlain, {}, {}}, true}; }
PricedEncoding Half(absl::Duration encode = absl::ZeroDuration()) {
  return {"float16", {kPlain / 2, encode, {}}, true};
}
PricedEncoding Sign() { return {"sign", {kPlain / 32, {}, {}}, false}; }

TEST(RecommendationTest, ARoundIsAPushAPullAndARoundTrip) {
  const RoundEstimate round =
      EstimateRound({2, kSlow, 2 * kSlow}, Plain(), absl::Milliseconds(10), kElements);
  EXPECT_EQ(round.connections, 2);
  EXPECT_EQ(round.encoding, "float32");
  EXPECT_EQ(round.push, absl::Seconds(1));
  EXPECT_EQ(round.pull, absl::Milliseconds(500));
  EXPECT_EQ(round.total, absl::Milliseconds(1510));
}

TEST(RecommendationTest, EncodingRunsBesideSendingExceptForOneChunk) {
  const RoundEstimate quick =
      EstimateRound({1, kSlow, kSlow}, Half(absl::Milliseconds(160)), {}, kElements);
  EXPECT_EQ(quick.push, absl::Milliseconds(510));  // half a second, and the first chunk's 10 ms
  const RoundEstimate slow =
      EstimateRound({1, kSlow, kSlow}, Half(absl::Seconds(2)), {}, kElements);
  EXPECT_EQ(slow.push, absl::Seconds(2) + absl::Seconds(0.5) / 16);
}

TEST(RecommendationTest, AVectorOfOneElementIsOneChunk) {
  const PricedEncoding plain = {"float32", {4, {}, {}}, true};
  EXPECT_EQ(EstimateRound({1, 4, 4}, plain, {}, 1).total, absl::Seconds(2));
}

TEST(RecommendationTest, TakesTheFastestOfWhatKeepsTheAccuracy) {
  const MeasuredPath path = {{}, {{1, kSlow, kSlow}}, false};
  const Recommendation result = Recommend(path, {Plain(), Half(), Sign()}, kElements);
  ASSERT_EQ(result.rounds.size(), 3u);
  EXPECT_LT(result.rounds[2].total, result.rounds[1].total);
  EXPECT_EQ(result.best.encoding, "float16");
  EXPECT_EQ(result.best.total, absl::Milliseconds(1500));
  EXPECT_EQ(result.why, "float16 saves 25 % of a round against unencoded gradients");
}

TEST(RecommendationTest, LeavesOutWhatSavesAtMostOneTwentieth) {
  // Encoding takes so long that float16 saves 4 %.
  const MeasuredPath path = {{}, {{1, kSlow, kSlow}, {2, 1.01 * kSlow, 1.01 * kSlow}}, false};
  const Recommendation result = Recommend(path, {Plain(), Half(absl::Seconds(0.89))}, kElements);
  EXPECT_EQ(result.best.encoding, "float32");
  EXPECT_EQ(result.best.connections, 1);
  EXPECT_EQ(result.why,
            "no encoding that keeps the accuracy saves more than 5 % of a round here, and more "
            "connections are not faster by that much");
}

TEST(RecommendationTest, TakesMoreConnectionsIfTheyAreFaster) {
  const MeasuredPath path = {
      {}, {{1, kSlow, kSlow}, {2, 2 * kSlow, 2 * kSlow}, {4, 2 * kSlow, 2 * kSlow}}, false};
  const Recommendation result = Recommend(path, {Plain(), Half(absl::Seconds(9))}, kElements);
  EXPECT_EQ(result.best.connections, 2);
  EXPECT_EQ(result.best.encoding, "float32");
  EXPECT_THAT(result.why, HasSubstr("2 connections save 50 % of a round against one"));
}

TEST(RecommendationTest, SharedMemoryNeedsNeither) {
  const MeasuredPath path = {{}, {{1, kSlow, kSlow}, {2, 2 * kSlow, 2 * kSlow}}, true};
  const Recommendation result = Recommend(path, {Plain(), Half()}, kElements);
  EXPECT_EQ(result.best.connections, 1);
  EXPECT_EQ(result.best.encoding, "float32");
  EXPECT_THAT(result.why, HasSubstr("from this machine's memory"));
}

}  // namespace
}  // namespace sluice

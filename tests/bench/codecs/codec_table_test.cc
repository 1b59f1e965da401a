#include "tools/bench/codecs/codec_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CodecResult Named(const std::string& name, double ratio, double encode, double decode) {
  CodecResult result;
  result.name = name;
  result.ratio = ratio;
  result.encodes = {encode, encode / 2, encode * 2};
  result.decodes = {decode};
  return result;
}

// The slower of two ways, 8 bits for each byte.
TEST(CodecTableTest, PaysWhileTheSlowerWayIsFasterThanTheLink) {
  EXPECT_DOUBLE_EQ(PaysBelow(Named("x", 2, 10, 3)), 24);
  EXPECT_DOUBLE_EQ(PaysBelow(Named("x", 1.01, 1, 3)), 8);
  EXPECT_DOUBLE_EQ(PaysBelow(Named("x", 1, 10, 3)), 0);
}

TEST(CodecTableTest, ShowsMediansAndExtremes) {
  EXPECT_THAT(CodecTable({Named("int8", 3.94, 12, 4)}),
              AllOf(HasSubstr("int8                 |    3.94 |   12.00   6.00– 24.00 |"),
                    HasSubstr("|       32.0"), Not(HasSubstr("at least"))));
}

TEST(CodecTableTest, HoldsSpeedsToTheirGoal) {
  CodecResult result = Named("int8", 4, 12, 5);
  result.at_least = 5;
  EXPECT_THAT(CodecTable({result}), HasSubstr("at least 5 each way: met"));
  result.decodes = {4.9};
  EXPECT_THAT(CodecTable({result}), HasSubstr("at least 5 each way: MISSED"));
  EXPECT_EQ(CountMissed({result, Named("sign", 30, 1, 1)}), 1u);
}

TEST(CodecTableTest, HoldsLosslessToTheFastestBloscOfNoBetterRatio) {
  CodecResult result = Named("float32/planes/zstd", 1.2, 3, 3);
  result.times_blosc = 2;
  const CodecResult fast = Named("blosc:lz4", 1.1, 1.25, 3);
  const CodecResult slow = Named("blosc:snappy", 1.15, 1, 3);
  const CodecResult better = Named("blosc:blosclz", 1.3, 5, 3);
  EXPECT_EQ(BloscBeside(result, {result}), nullptr);
  const std::vector<CodecResult> met = {result, slow, fast, better};
  EXPECT_THAT(CodecTable(met), HasSubstr("encode at least 2 × blosc:lz4: 2.40, met"));
  EXPECT_EQ(CountMissed(met), 0u);
  const std::vector<CodecResult> missed = {result, Named("blosc:lz4", 1.2, 2, 3)};
  EXPECT_THAT(CodecTable(missed), HasSubstr("1.50, MISSED"));
  EXPECT_EQ(CountMissed(missed), 1u);
  EXPECT_EQ(CountMissed({result}), 0u);
}

}  // namespace
}  // namespace sluice::bench

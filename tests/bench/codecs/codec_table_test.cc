#include "tools/bench/codecs/codec_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
                    HasSubstr("|       32.0\n")));
}

}  // namespace
}  // namespace sluice::bench

#include "common/base/random.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::MatchesRegex;

TEST(RandomHexTest, HasTwoLowerCaseDigitsForEachByte) {
  for (const int bytes : {1, 16, 32, 1000}) {
    EXPECT_EQ(RandomHex(bytes).size(), 2u * bytes);
    EXPECT_THAT(RandomHex(bytes), MatchesRegex("[0-9a-f]+"));
  }
  EXPECT_EQ(RandomHex(0), "");
}

TEST(RandomHexTest, IsNeverDrawnTwice) {
  std::set<std::string> drawn;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(drawn.insert(RandomHex(16)).second);
}

// 4096 digits: one of 16 is missing in one run of 10^114.
TEST(RandomHexTest, UsesEveryDigit) {
  const std::string digits = RandomHex(2048);
  EXPECT_EQ(std::set<char>(digits.begin(), digits.end()).size(), 16u);
}

// A bit that is the same in all of 1000 draws is stuck.
TEST(RandomNonceTest, UsesEveryBitAndIsNeverZeroOrDrawnTwice) {
  uint64_t all = 0, common = ~uint64_t{0};
  std::set<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t nonce = RandomNonce().value();
    EXPECT_NE(nonce, 0u);
    EXPECT_TRUE(drawn.insert(nonce).second);
    all |= nonce;
    common &= nonce;
  }
  EXPECT_EQ(all, ~uint64_t{0});
  EXPECT_EQ(common, 0u);
}

}  // namespace
}  // namespace sluice

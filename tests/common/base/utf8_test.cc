#include "common/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(Utf8Test, TakesEveryCharacterAtTheEdgesOfItsLength) {
  for (const absl::string_view text :
       {"", "conv1.weight", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "W\xC3\xA4rme"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string(1, '\0')));
}

TEST(Utf8Test, RefusesBytesThatAreNone) {
  for (const absl::string_view text :
       {"\x80", "\xBF", "\xFE", "\xFF", "\xF8\x88\x80\x80\x80", "a\xE9-"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(Utf8Test, RefusesCharactersThatAreCutTooLongOrHalf) {
  for (const absl::string_view text :
       {"\xC2", "\xE0\xA0", "\xF0\x90\x80", "\xC2-", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xED\xA0\x80", "\xED\xBF\xBF"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace sluice

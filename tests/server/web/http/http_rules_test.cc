// Which hosts, tokens and origins the listener takes.

#include "server/web/http/http_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(HttpRulesTest, ReadsTheHostOfAHostHeader) {
  EXPECT_EQ(HostOfHeader("localhost"), "localhost");
  EXPECT_EQ(HostOfHeader("Node7.Example:8080"), "node7.example");
  EXPECT_EQ(HostOfHeader("[::1]:8080"), "::1");
  EXPECT_EQ(HostOfHeader("[::1]"), "::1");
}

TEST(HttpRulesTest, TakesNoHostHeaderOfAnotherForm) {
  for (const char* header : {"", ":80", "a:", "a:b", "a:123456", "a b", "a/b", "user@a", "::1",
                             "[::1", "[::1]x", "a:80:80", "a\tb"}) {
    EXPECT_EQ(HostOfHeader(header), "") << header;
  }
}

TEST(HttpRulesTest, KnowsNamesAndAddressesOfLoopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
                           "0.0.0.0", "128.0.0.1", "0x7f000001", "2130706433"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(HttpRulesTest, TakesOnlyTheWholeTokenAsABearer) {
  EXPECT_TRUE(BearsToken("Bearer open sesame", "open sesame"));
  EXPECT_TRUE(BearsToken("bearer  s3cret ", "s3cret"));
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "s3cret",
                             "Basic s3cret", "Bearer S3CRET"}) {
    EXPECT_FALSE(BearsToken(header, "s3cret")) << header;
  }
}

TEST(HttpRulesTest, TakesTheOriginOfItsOwnPageOnly) {
  EXPECT_TRUE(IsOwnOrigin("http://localhost:8080", false, "localhost:8080"));
  EXPECT_TRUE(IsOwnOrigin("https://node7", true, "node7"));
  EXPECT_FALSE(IsOwnOrigin("http://localhost:8081", false, "localhost:8080"));
  EXPECT_FALSE(IsOwnOrigin("http://localhost:8080", true, "localhost:8080"));
  EXPECT_FALSE(IsOwnOrigin("null", false, "localhost:8080"));
  EXPECT_FALSE(IsOwnOrigin("", false, "localhost:8080"));
}

}  // namespace
}  // namespace sluice

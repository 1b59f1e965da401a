#include "common/net/address.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An address of a host and a port.
MATCHER_P2(IsHostPort, host, port, "") {
  return arg.host == host && arg.port == port && !arg.is_unix();
}

// Refused, with the address as it was found, the problem, and the forms expected.
auto RefusesAddress(const std::string& text, const std::string& problem) {
  return IsError(Reason::kBadArgument,
                 AllOf(HasSubstr(absl::StrCat("address \"", Shown(text), "\" ", problem)),
                       HasSubstr("expected host:port, [ipv6]:port or unix:/path")));
}

TEST(AddressTest, ReadsHostAndPort) {
  EXPECT_THAT(ParseAddress("127.0.0.1:7070"), IsOkAndHolds(IsHostPort("127.0.0.1", 7070)));
  EXPECT_THAT(ParseAddress("node7.cluster:1"), IsOkAndHolds(IsHostPort("node7.cluster", 1)));
}

TEST(AddressTest, ReadsTheEdgesOfThePorts) {
  EXPECT_THAT(ParseAddress("node7:0"), IsOkAndHolds(IsHostPort("node7", 0)));
  EXPECT_THAT(ParseAddress("node7:65535"), IsOkAndHolds(IsHostPort("node7", 65535)));
}

TEST(AddressTest, ReadsIpv6WithoutItsBrackets) {
  EXPECT_THAT(ParseAddress("[::1]:7070"), IsOkAndHolds(IsHostPort("::1", 7070)));
  EXPECT_THAT(ParseAddress("[2001:db8::7]:80"), IsOkAndHolds(IsHostPort("2001:db8::7", 80)));
}

TEST(AddressTest, ReadsUnixPaths) {
  const auto address = ParseAddress("unix:/run/sluice-a1/socket:7");
  ASSERT_THAT(address, IsOk());
  EXPECT_TRUE(address->is_unix());
  EXPECT_EQ(address->unix_path, "/run/sluice-a1/socket:7");
  EXPECT_EQ(address->host, "");
}

TEST(AddressTest, AcceptsUnixPathsOf107BytesAndRefusesLongerOnes) {
  const std::string longest = "unix:/" + std::string(106, 'p');
  EXPECT_THAT(ParseAddress(longest), IsOk());
  EXPECT_THAT(ParseAddress(longest + "p"),
              RefusesAddress(longest + "p", "has a path of 108 bytes, more than the system's 107"));
}

TEST(AddressTest, RefusesUnixPathsThatAreNotAbsolute) {
  for (const char* text : {"unix:socket", "unix:", "unix:./socket", "unix: /socket"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "has no absolute path"));
  }
}

TEST(AddressTest, RefusesAnAddressWithoutPort) {
  for (const char* text : {"", "node7", "127.0.0.1", "no\xff\nUTF-8"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "has no port"));
  }
}

TEST(AddressTest, RefusesWhatIsNoPort) {
  for (const char* text :
       {"node7:", "node7:65536", "node7:4294967296", "node7:99999999999999999999", "node7:-1",
        "node7:+1", "node7: 1", "node7:1 ", "node7:0x10", "node7:http", "node7:1\n", "[::1]:"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "has no port between 0 and 65535"));
  }
}

TEST(AddressTest, RefusesAnAddressWithoutHost) {
  for (const char* text : {":7070", "[]:7070", ":"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "has no host"));
  }
}

TEST(AddressTest, RefusesIpv6WithoutBrackets) {
  for (const char* text : {"::1:7070", "2001:db8::7:80", "::"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "needs brackets around its IPv6 host"));
  }
}

// Without its brackets, which nobody writes again, the first would be a unix socket.
TEST(AddressTest, RefusesBracketsAroundOtherHosts) {
  for (const char* text : {"[unix]:0", "[node7]:70", "[127.0.0.1]:70"}) {
    EXPECT_THAT(ParseAddress(text),
                IsError(Reason::kBadArgument, HasSubstr("brackets around a host that is no IPv6")));
  }
}

TEST(AddressTest, RefusesStrayBracketsAndSpaces) {
  for (const char* text :
       {"[node7:70", "node7]:70", "[[::1]]:70", "[::1:70", "node 7:70", " n:70"}) {
    EXPECT_THAT(ParseAddress(text), RefusesAddress(text, "has a stray bracket or space"));
  }
}

TEST(AddressTest, TellsWhatOtherNodesCannotReach) {
  for (const char* text :
       {"127.0.0.1:7070", "127.8.9.10:0", "localhost:7070", "[::1]:7070", "unix:/run/socket"}) {
    EXPECT_TRUE(ParseAddress(text)->IsLocal()) << text;
  }
  for (const char* text :
       {"0.0.0.0:7070", "[::]:7070", "10.0.0.1:7070", "node7:7070", "128.0.0.1:7070",
        "127.0.0.1.example.com:7070", "localhost.example.com:7070", "[fe80::1]:7070"}) {
    EXPECT_FALSE(ParseAddress(text)->IsLocal()) << text;
  }
}

TEST(AddressTest, WritesWhatItReads) {
  for (const char* text : {"127.0.0.1:7070", "[::1]:0", "node7:65535", "unix:/run/socket"}) {
    const auto address = ParseAddress(text);
    ASSERT_THAT(address, IsOk());
    EXPECT_EQ(address->ToString(), text);
  }
}

}  // namespace
}  // namespace sluice

#include "common/net/network.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Whether the system takes `host`, a numeric address, as one of this node.
bool CanListenOn(const std::string& host) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* address = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &address) != 0) return false;
  const int fd = socket(address->ai_family, address->ai_socktype, 0);
  const bool bound = bind(fd, address->ai_addr, address->ai_addrlen) == 0;
  close(fd);
  freeaddrinfo(address);
  return bound;
}

TEST(RoutableHostTest, GivesTheNamedInterfacesAddress) {
  EXPECT_THAT(RoutableHost("lo"), IsOkAndHolds(AnyOf("127.0.0.1", "::1")));
}

TEST(RoutableHostTest, GivesAnAddressOfThisNodeThatIsNotLoopback) {
  const auto host = RoutableHost("");
  if (host.ok()) {
    EXPECT_TRUE(CanListenOn(*host)) << *host;
    EXPECT_THAT(*host, AllOf(Not(StartsWith("127.")), Not("::1")));
  } else {  // a sandbox without a network
    EXPECT_THAT(host,
                IsError(Reason::kBadArgument, AllOf(HasSubstr("no interface but loopback"),
                                                    HasSubstr("lo ("), HasSubstr("--interface"))));
  }
}

TEST(RoutableHostTest, ListsTheInterfacesItKnowsWhenOneIsUnknown) {
  for (const char* name : {"nosuch0", "l", "lo0 ", "127.0.0.1"}) {
    EXPECT_THAT(RoutableHost(name), IsError(Reason::kBadArgument,
                                            AllOf(HasSubstr("no interface \"" + std::string(name)),
                                                  HasSubstr("lo ("))));
  }
}

TEST(HostNameTest, IsTheSystems) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(HostName(), name);
}

}  // namespace
}  // namespace sluice

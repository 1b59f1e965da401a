#include "common/net/listening_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kTimeout = absl::Seconds(10);

absl::StatusOr<ListeningSockets> ListenAt(const std::string& text) {
  return ListeningSockets::Open(*ParseAddress(text), kTimeout);
}

// Connects over IPv4, and returns what the listening side accepts.
FileDescriptor AcceptOverIpv4(const ListeningSockets& listening) {
  const FileDescriptor client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(listening.address().port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  return listening.Accept(listening.sockets()[0]);
}

int Option(const FileDescriptor& socket, int level, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  getsockopt(socket.get(), level, option, &value, &size);
  return value;
}

TEST(ListeningSocketsTest, TellsThePortThatWasChosen) {
  const auto listening = ListenAt("127.0.0.1:0");
  ASSERT_THAT(listening, IsOk());
  EXPECT_NE(listening->address().port, 0);
  EXPECT_TRUE(AcceptOverIpv4(*listening).ok());
}

TEST(ListeningSocketsTest, GivesConnectionsTheOptionsOfTheListeningSocket) {
  const auto listening = ListenAt("127.0.0.1:0");
  ASSERT_THAT(listening, IsOk());
  const FileDescriptor accepted = AcceptOverIpv4(*listening);
  ASSERT_TRUE(accepted.ok());
  EXPECT_EQ(Option(accepted, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(Option(accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 10000);
  EXPECT_EQ(Option(accepted, SOL_SOCKET, SO_REUSEPORT), 0);
}

TEST(ListeningSocketsTest, TakesIpv4AtBothWildcards) {
  for (const char* wildcard : {"0.0.0.0:0", "[::]:0"}) {
    const auto listening = ListenAt(wildcard);
    ASSERT_THAT(listening, IsOk());
    EXPECT_TRUE(AcceptOverIpv4(*listening).ok()) << wildcard;
  }
}

TEST(ListeningSocketsTest, RefusesAPortThatAnotherHas) {
  const auto first = ListenAt("127.0.0.1:0");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(ListenAt(first->address().ToString()),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("Address already in use")));
}

// An IPv6 wildcard of another program that leaves IPv4 alone: part of the address would be missing.
TEST(ListeningSocketsTest, RefusesAWildcardOfWhichAnotherHasThePortForIpv6) {
  const FileDescriptor other(socket(AF_INET6, SOCK_STREAM, 0));
  const int on = 1;
  setsockopt(other.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  sockaddr_in6 name = {};
  name.sin6_family = AF_INET6;
  socklen_t size = sizeof(name);
  if (bind(other.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  ASSERT_EQ(listen(other.get(), 1), 0);
  getsockname(other.get(), reinterpret_cast<sockaddr*>(&name), &size);
  EXPECT_THAT(ListenAt(absl::StrCat("0.0.0.0:", ntohs(name.sin6_port))),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("Address already in use")));
}

TEST(ListeningSocketsTest, RefusesAHostThatIsNotKnown) {
  EXPECT_THAT(ListenAt("no-such-host.invalid:0").status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketsTest, UsesOnePortForAllAddressesOfAHost) {
  const auto listening = ListenAt("localhost:0");
  ASSERT_THAT(listening, IsOk());
  for (const FileDescriptor& socket : listening->sockets()) {
    sockaddr_in6 name = {};
    socklen_t size = sizeof(name);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
    EXPECT_EQ(ntohs(name.sin6_port), listening->address().port);
  }
}

TEST(ListeningSocketsTest, HasNothingToAcceptBeforeSomebodyConnects) {
  const auto listening = ListenAt("127.0.0.1:0");
  ASSERT_THAT(listening, IsOk());
  ASSERT_THAT(listening->sockets(), SizeIs(1));
  EXPECT_FALSE(listening->Accept(listening->sockets()[0]).ok());
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace sluice

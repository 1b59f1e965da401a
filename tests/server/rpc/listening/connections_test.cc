// How many connections there may be.

#include "server/rpc/listening/connections.h"

#include <sys/socket.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kHere("\x7f\0\0\1\x1f\x90", 6);       // 127.0.0.1, port 8080
const std::string kHereToo("\x7f\0\0\1\x1f\x91", 6);    // another port
const std::string kElsewhere("\x0a\0\0\7\x1f\x90", 6);  // 10.0.0.7
const std::string kUnix;

class ConnectionsTest : public ::testing::Test {
 protected:
  // Returns the handle.
  int Add(const std::string& peer) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    others_.emplace_back(ends[1]);
    connections_.Add(FileDescriptor(ends[0]), peer, absl::ZeroDuration());
    return ends[0];
  }

  std::vector<FileDescriptor> others_;
  Connections connections_{{4, 2, CallRules()}};
};

TEST_F(ConnectionsTest, TakesAsManyOfOneAddressAsItMay) {
  const int first = Add(kHere);
  Add(kHereToo);
  EXPECT_THAT(connections_.WhyFull(kHere),
              HasSubstr("there are 2 connections from this address already"));
  EXPECT_THAT(connections_.WhyFull(kElsewhere), IsEmpty());
  connections_.Remove(first);
  EXPECT_THAT(connections_.WhyFull(kHere), IsEmpty());
}

TEST_F(ConnectionsTest, TakesAsManyInAllAsItMay) {
  Add(kHere);
  Add(kElsewhere);
  Add(kUnix);
  EXPECT_THAT(connections_.WhyFull(kUnix), IsEmpty());
  Add(kUnix);
  for (const std::string& peer : {kHere, kElsewhere, kUnix}) {
    EXPECT_THAT(connections_.WhyFull(peer), HasSubstr("there are 4 connections already"));
  }
}

TEST_F(ConnectionsTest, CountsNoAddressOnAUnixSocket) {
  for (int i = 0; i < 3; ++i) Add(kUnix);
  EXPECT_THAT(connections_.WhyFull(kUnix), IsEmpty());
}

TEST_F(ConnectionsTest, KnowsWhenTheFirstCallOfTheEldestIsDue) {
  EXPECT_EQ(connections_.next_due(), absl::InfiniteDuration());
  Add(kHere);
  EXPECT_EQ(connections_.next_due(), CallRules().first_call);
}

TEST(PeerTest, IsShownAsPeopleWriteIt) {
  EXPECT_EQ(ShownPeer(kElsewhere), "10.0.0.7");
  EXPECT_EQ(ShownPeer(std::string(15, '\0') + std::string("\1\x1f\x90", 3)), "::1");
  EXPECT_EQ(ShownPeer(kUnix), "a unix socket");
}

}  // namespace
}  // namespace sluice

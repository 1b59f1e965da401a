// How many connections have a place, and when one has lost it.

#include "server/web/http/http_connections.h"

#include <sys/socket.h>

#include "common/base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace sluice {
namespace {

HttpLimits Limits() {
  HttpLimits limits;
  limits.connections = 4;
  limits.served = 2;
  limits.of_one_address = 2;
  limits.exchange = absl::Seconds(20);
  return limits;
}

// Two ends of a connection.
struct Ends {
  Ends() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    ours = FileDescriptor(ends[0]);
    theirs = FileDescriptor(ends[1]);
  }

  bool over() const {  // whether the peer reads the end
    char byte = 0;
    return recv(theirs.get(), &byte, 1, 0) == 0;
  }

  FileDescriptor ours;
  FileDescriptor theirs;
};

class HttpConnectionsTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  HttpConnections connections_{Limits(), clock_};
};

TEST_F(HttpConnectionsTest, HasAsManyPlacesAsTheLimit) {
  for (int fd = 0; fd < 4; ++fd) EXPECT_TRUE(connections_.Add(fd, "127.0.0.1"));
  EXPECT_FALSE(connections_.Add(4, "127.0.0.1"));
  connections_.Remove(2);
  EXPECT_TRUE(connections_.Add(4, "127.0.0.1"));
}

TEST_F(HttpConnectionsTest, AnAddressBeyondLoopbackHasFewerPlaces) {
  EXPECT_TRUE(connections_.Add(0, "10.0.0.1"));
  EXPECT_TRUE(connections_.Add(1, "10.0.0.1"));
  EXPECT_FALSE(connections_.Add(2, "10.0.0.1"));
  EXPECT_TRUE(connections_.Add(2, "10.0.0.2"));
}

TEST_F(HttpConnectionsTest, AnIpv6NetworkIsOneAddress) {
  EXPECT_TRUE(connections_.Add(0, "2001:db8:0:1::1"));
  EXPECT_TRUE(connections_.Add(1, "2001:db8:0:1:ffff::2"));
  EXPECT_FALSE(connections_.Add(2, "2001:db8:0:1::3"));
  EXPECT_TRUE(connections_.Add(2, "2001:db8:0:2::1"));
}

TEST_F(HttpConnectionsTest, AConnectionThatIsServedIsNotCrowdedOutByLaterOnes) {
  for (int fd = 0; fd < 4; ++fd) connections_.Add(fd, "::1");
  EXPECT_FALSE(connections_.crowded_out(0));
  EXPECT_FALSE(connections_.crowded_out(1));
  EXPECT_TRUE(connections_.crowded_out(2));
  EXPECT_TRUE(connections_.crowded_out(3));
  connections_.Remove(0);
  EXPECT_TRUE(connections_.crowded_out(2));
  connections_.Add(0, "::1");
  EXPECT_FALSE(connections_.crowded_out(0));
}

TEST_F(HttpConnectionsTest, EndsAConnectionThatHasNotMovedOnInTime) {
  const Ends slow;
  const Ends busy;
  connections_.Add(slow.ours.get(), "::1");
  connections_.Add(busy.ours.get(), "::1");
  clock_.Advance(absl::Seconds(19));
  connections_.Renew(busy.ours.get());
  connections_.Sweep();
  EXPECT_FALSE(slow.over());
  clock_.Advance(absl::Seconds(1));
  connections_.Sweep();
  EXPECT_TRUE(slow.over());
  EXPECT_FALSE(busy.over());
}

TEST_F(HttpConnectionsTest, AStreamMayRestForAsLongAsNothingHappens) {
  const Ends stream;
  connections_.Add(stream.ours.get(), "::1");
  connections_.Rest(stream.ours.get());
  clock_.Advance(absl::Hours(24));
  connections_.Sweep();
  EXPECT_FALSE(stream.over());
  connections_.Renew(stream.ours.get());
  clock_.Advance(absl::Seconds(20));
  connections_.Sweep();
  EXPECT_TRUE(stream.over());
}

}  // namespace
}  // namespace sluice

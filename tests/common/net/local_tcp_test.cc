#include "common/net/local_tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "common/net/listening_sockets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

FileDescriptor TcpSocket() {
  return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

std::string CongestionOf(const FileDescriptor& socket) {
  char name[16] = "";
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

// Connects a socket that binds to `from` first, and accepts it.
FileDescriptor AcceptFrom(in_addr_t from, const ListeningSockets& listening,
                          FileDescriptor* client) {
  *client = TcpSocket();
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(from);
  EXPECT_EQ(bind(client->get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  name.sin_port = htons(listening.address().port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client->get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  return listening.Accept(listening.sockets()[0]);
}

TEST(LocalTcpTest, AServerSendsWithoutPacingWithinItsMachine) {
  for (const char* address : {"127.0.0.1:0", "0.0.0.0:0"}) {
    const auto listening = ListeningSockets::Open(*ParseAddress(address), absl::Seconds(10));
    ASSERT_THAT(listening, IsOk());
    FileDescriptor client;
    const FileDescriptor accepted = AcceptFrom(INADDR_LOOPBACK, *listening, &client);
    ASSERT_TRUE(accepted.ok());
    EXPECT_EQ(CongestionOf(accepted), "reno") << address;
  }
}

TEST(LocalTcpTest, TheTwoEndsMayHaveDifferentLoopbackAddresses) {
  const auto listening = ListeningSockets::Open(*ParseAddress("127.0.0.1:0"), absl::Seconds(10));
  ASSERT_THAT(listening, IsOk());
  FileDescriptor client;
  const FileDescriptor accepted = AcceptFrom(INADDR_LOOPBACK + 1, *listening, &client);
  ASSERT_TRUE(accepted.ok());
  EXPECT_EQ(CongestionOf(accepted), "reno");
}

TEST(LocalTcpTest, ASocketThatIsNotConnectedKeepsWhatTheSystemChose) {
  const FileDescriptor socket = TcpSocket();
  const std::string chosen = CongestionOf(socket);
  SendWithoutPacingIfLocal(socket.get());
  EXPECT_EQ(CongestionOf(socket), chosen);
  SendWithoutPacing(socket.get());
  EXPECT_EQ(CongestionOf(socket), "reno");
}

}  // namespace
}  // namespace sluice

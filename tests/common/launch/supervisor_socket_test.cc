// The socket that a program inherits from its supervisor.

#include <fcntl.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

#include "common/launch/supervisor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kVariable[] = "SLUICE_SUPERVISOR_SOCKET";

class SupervisorSocketTest : public ::testing::Test {
 protected:
  ~SupervisorSocketTest() override { unsetenv(kVariable); }
};

TEST_F(SupervisorSocketTest, IsTheOneThatTheEnvironmentNames) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const SupervisorSocket other{FileDescriptor(ends[1])};
  setenv(kVariable, std::to_string(ends[0]).c_str(), 1);
  EXPECT_TRUE(SupervisorSocket::IsInherited());
  auto inherited = SupervisorSocket::Inherited();
  ASSERT_TRUE(inherited.has_value());
  EXPECT_FALSE(SupervisorSocket::IsInherited());
  EXPECT_THAT(inherited->Send("hello"), IsOk());
  EXPECT_THAT(other.Receive(), IsOkAndHolds(std::string("hello")));
  inherited.reset();
  EXPECT_THAT(other.Receive(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("ended")));
}

TEST_F(SupervisorSocketTest, IsAbsentWithoutASupervisor) {
  EXPECT_FALSE(SupervisorSocket::IsInherited());
  EXPECT_FALSE(SupervisorSocket::Inherited().has_value());
}

// Standard input, whose number is 0, must not be taken for it.
TEST_F(SupervisorSocketTest, IsAbsentIfTheEnvironmentNamesNoOpenDescriptor) {
  for (const char* text : {"", "socket", "1000000"}) {
    setenv(kVariable, text, 1);
    EXPECT_FALSE(SupervisorSocket::Inherited().has_value()) << text;
  }
  EXPECT_EQ(fcntl(0, F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace sluice

#include "common/net/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>

#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

auto IsUnavailable(const std::string& words) {
  return HasCode(absl::StatusCode::kUnavailable, HasSubstr(words));
}

// Bytes that can be sent without anybody reading.
size_t Room(const FileDescriptor& socket) {
  const std::string block(4096, 'x');
  size_t sent = 0;
  for (ssize_t some = 0; some >= 0; some = send(socket.get(), block.data(), block.size(), 0)) {
    sent += static_cast<size_t>(some);
  }
  EXPECT_EQ(errno, EAGAIN);
  return sent;
}

class UnixSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = PrivateDirectory::Create();  // a test's own has too long a path
    ASSERT_THAT(directory, IsOk());
    directory_ = *std::move(directory);
    path_ = directory_->path() + "/test.sock";
  }

  std::unique_ptr<PrivateDirectory> directory_;
  std::string path_;
};

TEST_F(UnixSocketTest, BothEndsTakeAWholeChunkThatNobodyReads) {
  const auto listening = ListenUnix(path_);
  ASSERT_THAT(listening, IsOk());
  const auto client = ConnectUnix(path_);
  ASSERT_THAT(client, IsOk());
  const FileDescriptor server = AcceptUnix(*listening);
  ASSERT_TRUE(server.ok());
  constexpr size_t kChunk = 1 << 20;
  EXPECT_GE(Room(*client), kChunk);
  EXPECT_GE(Room(server), kChunk);
}

TEST_F(UnixSocketTest, AcceptsNobodyIfNobodyWaits) {
  const auto listening = ListenUnix(path_);
  ASSERT_THAT(listening, IsOk());
  EXPECT_FALSE(AcceptUnix(*listening).ok());
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(UnixSocketTest, LeavesTheSocketOfALivingServerAlone) {
  const auto living = ListenUnix(path_);
  ASSERT_THAT(living, IsOk());
  EXPECT_THAT(ListenUnix(path_), IsUnavailable("another server listens there"));
  EXPECT_THAT(ConnectUnix(path_), IsOk());
}

TEST_F(UnixSocketTest, TakesThePlaceOfADeadServersSocket) {
  ASSERT_THAT(ListenUnix(path_), IsOk());  // and closes it
  EXPECT_THAT(ConnectUnix(path_), IsUnavailable("Connection refused"));
  const auto listening = ListenUnix(path_);
  ASSERT_THAT(listening, IsOk());
  EXPECT_THAT(ConnectUnix(path_), IsOk());
}

TEST_F(UnixSocketTest, SaysWhyItCannot) {
  EXPECT_THAT(ConnectUnix(path_), IsUnavailable("No such file"));
  EXPECT_THAT(ListenUnix("/nonexistent/a.sock"), IsUnavailable("No such file"));
  EXPECT_THAT(ListenUnix(std::string(200, 'x')), IsUnavailable("more than 107 bytes"));
}

}  // namespace
}  // namespace sluice

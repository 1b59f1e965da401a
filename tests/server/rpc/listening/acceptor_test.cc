// Which connections the acceptor takes, and what it does when the system has no descriptor.

#include "server/rpc/listening/acceptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/net/private_directory.h"
#include "common/net/unix_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/listening/open_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// An acceptor on a unix socket. What it accepts is kept open.
class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    directory_ = *PrivateDirectory::Create();
    Address address;
    address.unix_path = directory_->path() + "/s";
    path_ = address.unix_path;
    AcceptorOptions options;
    options.limits.in_all = 2;
    options.limits.of_one_address = 2;
    options.serve = [this](FileDescriptor accepted) {
      const absl::MutexLock lock(&mu_);
      taken_.push_back(std::move(accepted));
    };
    auto listening = ListeningSockets::Open(address, absl::Seconds(10));
    EXPECT_THAT(listening, IsOk());
    auto acceptor = Acceptor::Start(*std::move(listening), std::move(options), calls_);
    EXPECT_THAT(acceptor, IsOk());
    acceptor_ = *std::move(acceptor);
  }

  // A connection that blocks when it is read.
  FileDescriptor Connect() const {
    auto connected = ConnectUnix(path_);
    EXPECT_THAT(connected, IsOk());
    fcntl(connected->get(), F_SETFL, 0);
    return *std::move(connected);
  }

  void AwaitTaken(size_t count) {
    const absl::MutexLock lock(&mu_);
    const auto enough = [this, count]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return taken_.size() >= count; };
    mu_.Await(absl::Condition(&enough));
  }

  void EndTaken() {
    const absl::MutexLock lock(&mu_);
    for (const FileDescriptor& one : taken_) shutdown(one.get(), SHUT_RDWR);
    taken_.clear();
  }

  std::unique_ptr<PrivateDirectory> directory_;
  std::string path_;
  CallCounter calls_;
  absl::Mutex mu_;
  std::vector<FileDescriptor> taken_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Acceptor> acceptor_;
};

bool IsClosed(const FileDescriptor& connection) {
  char byte = 0;
  return read(connection.get(), &byte, 1) == 0;
}

TEST_F(AcceptorTest, ClosesConnectionsBeyondTheLimitAndTakesOthersOnceThereIsRoom) {
  const FileDescriptor first = Connect();
  const FileDescriptor second = Connect();
  AwaitTaken(2);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(IsClosed(Connect()));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("refused a connection from a unix socket: there are 2 connections already"));
  EndTaken();
  EXPECT_TRUE(IsClosed(first));
  // The acceptor learns of the ends in its own time.
  while (true) {
    const FileDescriptor next = Connect();
    const absl::MutexLock lock(&mu_);
    const auto taken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !taken_.empty(); };
    if (mu_.AwaitWithTimeout(absl::Condition(&taken), absl::Milliseconds(100))) break;
  }
}

TEST_F(AcceptorTest, TakesConnectionsAgainAfterTheDescriptorsRanOut) {
  const FileDescriptor before = Connect();
  AwaitTaken(1);
  FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const OpenFiles limit = OpenFilesLimit();
  // From now on no descriptor is free, but for those that are closed.
  rlimit none = {static_cast<rlim_t>(client.get()) + 1, static_cast<rlim_t>(limit.most)};
  setrlimit(RLIMIT_NOFILE, &none);
  std::vector<FileDescriptor> fill;
  for (FileDescriptor one(dup(0)); one.ok(); one = FileDescriptor(dup(0))) {
    fill.push_back(std::move(one));
  }
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path_.copy(name.sun_path, sizeof(name.sun_path) - 1);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  EXPECT_TRUE(IsClosed(client));
  fill.clear();
  none.rlim_cur = static_cast<rlim_t>(limit.now);
  setrlimit(RLIMIT_NOFILE, &none);
  const FileDescriptor after = Connect();
  AwaitTaken(2);
}

}  // namespace
}  // namespace sluice

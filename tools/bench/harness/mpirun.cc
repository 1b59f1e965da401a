#include "tools/bench/harness/mpirun.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/launch/child_process.h"
#include "common/net/private_directory.h"

namespace sluice::bench {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }  // the caller's

 private:
  int fd_;
};

absl::Status ListenAt(const std::string& path, const Descriptor& socket) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 &&
      listen(socket.get(), SOMAXCONN) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", path));
}

// Waits for a rank to connect, unless mpirun ends before.
absl::StatusOr<int> AcceptFrom(const Descriptor& listener, const Descriptor& mpirun) {
  pollfd either[] = {{listener.get(), POLLIN, 0}, {mpirun.get(), POLLIN, 0}};
  while (poll(either, 2, -1) < 0 && errno == EINTR) {
  }
  if (either[0].revents == 0) return absl::AbortedError("mpirun ended before its ranks had come");
  return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
}

// Reads what stdio_proxy_main sends first: its rank, as one integer.
absl::StatusOr<size_t> ReadRank(int socket, size_t ranks) {
  uint32_t rank = 0;
  const ssize_t size = recv(socket, &rank, sizeof(rank), MSG_WAITALL);
  if (size == sizeof(rank) && rank < ranks) return rank;
  return absl::AbortedError(absl::StrCat("a rank of mpirun said it was ", rank));
}

absl::Status TieRanks(const Descriptor& listener, const std::vector<std::string>& names,
                      MpiLaunch& launch) {
  const Descriptor mpirun(OpenPidfd(launch.mpirun->pid()));
  launch.ranks.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto accepted = AcceptFrom(listener, mpirun);
    if (!accepted.ok()) return accepted.status();
    Descriptor socket(*accepted);
    const auto rank = ReadRank(socket.get(), names.size());
    if (!rank.ok()) return rank.status();
    const int from = fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);
    launch.ranks[*rank] = std::make_unique<ParticipantLink>(names[*rank], socket.Release(), from);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MpiLaunch> LaunchByMpirun(const std::string& root,
                                         const std::vector<std::string>& names,
                                         const std::vector<std::string>& command) {
  const auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  const std::string path = absl::StrCat((*directory)->path(), "/ranks.sock");
  const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const absl::Status listens = ListenAt(path, listener);
  if (!listens.ok()) return listens;
  std::vector<std::string> argv = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n"};
  argv.push_back(absl::StrCat(names.size()));
  argv.push_back(absl::StrCat(root, "/tools/bench/harness/stdio_proxy_main"));
  argv.push_back(path);
  argv.insert(argv.end(), command.begin(), command.end());
  auto mpirun = Child::Start("mpirun", argv, {});
  if (!mpirun.ok()) return mpirun.status();
  MpiLaunch launch;
  launch.mpirun = *std::move(mpirun);
  const absl::Status tied = TieRanks(listener, names, launch);
  if (!tied.ok()) return tied;
  return launch;
}

}  // namespace sluice::bench

#include "tools/bench/socket_side.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/address.h"
#include "tools/bench/endpoint.h"

namespace sluice::bench {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }

 private:
  const int fd_;
};

// An address as the kernel takes it.
struct Name {
  explicit Name(const Address& address) {
    if (address.is_unix()) {
      family = unix_name.sun_family = AF_UNIX;
      address.unix_path.copy(unix_name.sun_path, sizeof(unix_name.sun_path) - 1);
    } else {
      family = inet_name.sin_family = AF_INET;
      inet_name.sin_port = htons(address.port);
      inet_pton(AF_INET, address.host.c_str(), &inet_name.sin_addr);
    }
  }

  const sockaddr* get() const {
    return family == AF_UNIX ? reinterpret_cast<const sockaddr*>(&unix_name)
                             : reinterpret_cast<const sockaddr*>(&inet_name);
  }
  socklen_t size() const { return family == AF_UNIX ? sizeof(unix_name) : sizeof(inet_name); }

  int family = AF_UNSPEC;
  sockaddr_un unix_name = {};
  sockaddr_in inet_name = {};
};

absl::Status Failed(absl::string_view what, const Address& address) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", address.ToString()));
}

std::unique_ptr<Socket> OpenFor(const Name& name) {
  return std::make_unique<Socket>(socket(name.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

// Puts the port that was chosen into `address`, if it is one with a port.
absl::StatusOr<std::unique_ptr<Socket>> Listen(Address* address) {
  const Name name(*address);
  auto listener = OpenFor(name);
  if (bind(listener->fd(), name.get(), name.size()) != 0 || listen(listener->fd(), 64) != 0) {
    return Failed("listen on", *address);
  }
  if (address->is_unix()) return listener;
  sockaddr_in chosen = {};
  socklen_t size = sizeof(chosen);
  getsockname(listener->fd(), reinterpret_cast<sockaddr*>(&chosen), &size);
  address->port = ntohs(chosen.sin_port);
  return listener;
}

// gRPC sets this too: otherwise the last bytes of a vector wait for an acknowledgement.
void SendAtOnce(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails on a unix socket
}

absl::StatusOr<std::unique_ptr<Socket>> Connect(const Address& address) {
  const Name name(address);
  auto socket = OpenFor(name);
  if (connect(socket->fd(), name.get(), name.size()) != 0) return Failed("connect to", address);
  SendAtOnce(*socket);
  return socket;
}

// Moves all of `bytes` by `move`, which is send() or recv(). False if the other end has hung up.
template <typename Move>
bool MoveAll(absl::Span<char> bytes, const Move& move) {
  while (!bytes.empty()) {
    const ssize_t moved = move(bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(moved));
  }
  return true;
}

absl::Span<char> BytesOf(std::vector<float>& vector) {
  return absl::MakeSpan(reinterpret_cast<char*>(vector.data()), vector.size() * sizeof(float));
}

bool Send(const Socket& socket, std::vector<float>& vector) {
  return MoveAll(BytesOf(vector), [&](const char* data, size_t size) {
    return send(socket.fd(), data, size, MSG_NOSIGNAL);
  });
}

bool Receive(const Socket& socket, std::vector<float>& vector) {
  return MoveAll(BytesOf(vector),
                 [&](char* data, size_t size) { return recv(socket.fd(), data, size, 0); });
}

// Serves one worker until it hangs up.
void ServeOne(const Socket& listener, uint64_t elements) {
  const Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  SendAtOnce(socket);
  std::vector<float> vector(elements);
  while (Receive(socket, vector) && Send(socket, vector)) {
  }
}

}  // namespace

absl::Status RunSocketServer(const Part& part) {
  // It ends at the end of its stdin, and then removes its directory.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  auto endpoint = MakeEndpoint(part.cell.socket);
  if (!endpoint.ok()) return endpoint.status();
  Address& address = endpoint->address;
  const auto listener = Listen(&address);
  if (!listener.ok()) return listener.status();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < part.cell.workers; ++i) {
    threads.emplace_back([&] { ServeOne(**listener, part.cell.elements); });
  }
  const absl::Status answered = AnswerParent(address.ToString(), nullptr);
  shutdown((*listener)->fd(), SHUT_RDWR);  // for threads whose worker never came
  for (std::thread& thread : threads) thread.join();
  return answered;
}

absl::Status RunSocketWorker(const Part& part) {
  const auto address = ParseAddress(part.address);
  if (!address.ok()) return address.status();
  const auto socket = Connect(*address);
  if (!socket.ok()) return socket.status();
  std::vector<float> sent(part.cell.elements);
  std::iota(sent.begin(), sent.end(), 0.0f);
  std::vector<float> received(part.cell.elements);
  const absl::Status answered = AnswerParent("", [&] {
    return Send(**socket, sent) && Receive(**socket, received)
               ? absl::OkStatus()
               : absl::UnavailableError("the server hung up");
  });
  if (!answered.ok()) return answered;
  if (sent == received) return absl::OkStatus();
  return absl::InternalError("what came back is not what was sent");
}

}  // namespace sluice::bench

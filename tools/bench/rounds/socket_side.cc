#include "tools/bench/rounds/socket_side.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/net/address.h"
#include "tools/bench/harness/gradient.h"
#include "tools/bench/rounds/plain_sgd.h"

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

// An address in the form of the kernel.
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

// A connection has the congestion control of the socket that listened or connected.
absl::Status SetCongestion(const Socket& socket, const std::string& algorithm) {
  if (algorithm.empty()) return absl::OkStatus();
  const auto size = static_cast<socklen_t>(algorithm.size());
  if (setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, algorithm.data(), size) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot choose congestion control ", algorithm));
}

// Puts the chosen port into `address`, if it has a port.
absl::StatusOr<std::unique_ptr<Socket>> Listen(const std::string& congestion, Address* address) {
  const Name name(*address);
  auto listener = OpenFor(name);
  const absl::Status chosen_congestion = SetCongestion(*listener, congestion);
  if (!chosen_congestion.ok()) return chosen_congestion;
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

// gRPC sets this, too. Without it the last bytes of a vector wait for an acknowledgement.
void SendAtOnce(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails on a unix socket
}

absl::StatusOr<std::unique_ptr<Socket>> Connect(const std::string& congestion,
                                                const Address& address) {
  const Name name(address);
  auto socket = OpenFor(name);
  const absl::Status chosen = SetCongestion(*socket, congestion);
  if (!chosen.ok()) return chosen;
  if (connect(socket->fd(), name.get(), name.size()) != 0) return Failed("connect to", address);
  SendAtOnce(*socket);
  return socket;
}

// Moves all of `bytes` by `move`, which is send() or recv(). Returns false if the peer closed.
template <typename Byte, typename Move>
bool MoveAll(absl::Span<Byte> bytes, const Move& move) {
  while (!bytes.empty()) {
    const ssize_t moved = move(bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(moved));
  }
  return true;
}

bool Send(const Socket& socket, const std::vector<float>& vector) {
  const absl::Span<const char> bytes(reinterpret_cast<const char*>(vector.data()),
                                     vector.size() * sizeof(float));
  return MoveAll(bytes, [&](const char* data, size_t size) {
    return send(socket.fd(), data, size, MSG_NOSIGNAL);
  });
}

bool Receive(const Socket& socket, std::vector<float>& vector) {
  const absl::Span<char> bytes(reinterpret_cast<char*>(vector.data()),
                               vector.size() * sizeof(float));
  return MoveAll(bytes, [&](char* data, size_t size) { return recv(socket.fd(), data, size, 0); });
}

std::unique_ptr<Socket> Accept(const Socket& listener) {
  auto socket = std::make_unique<Socket>(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  SendAtOnce(*socket);
  return socket;
}

// Sends one worker's vectors back until it closes the connection.
void CopyForOne(const Socket& listener, uint64_t elements) {
  const auto socket = Accept(listener);
  std::vector<float> vector(elements);
  while (Receive(*socket, vector) && Send(*socket, vector)) {
  }
}

// Does the same, but sends the parameters.
void StepForOne(const Socket& listener, uint64_t elements, PlainSgd& sgd) {
  const auto socket = Accept(listener);
  std::vector<float> vector(elements);
  while (Receive(*socket, vector) && sgd.Step(vector) && Send(*socket, sgd.parameters())) {
  }
  sgd.Leave();
}

}  // namespace

absl::Status RunSocketServer(const Participant& participant, const SocketOptions& options) {
  // Ends with its stdin, then removes its directory.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  auto endpoint = MakeEndpoint(options.socket);
  if (!endpoint.ok()) return endpoint.status();
  Address& address = endpoint->address;
  const auto listener = Listen(options.congestion, &address);
  if (!listener.ok()) return listener.status();
  PlainSgd sgd(options.sgd ? participant.elements : 0, participant.workers);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < participant.workers; ++i) {
    threads.emplace_back([&] {
      if (options.sgd) {
        StepForOne(**listener, participant.elements, sgd);
      } else {
        CopyForOne(**listener, participant.elements);
      }
    });
  }
  const absl::Status answered = AnswerParent(address.ToString(), nullptr);
  shutdown((*listener)->fd(), SHUT_RDWR);  // for threads whose worker never came
  for (std::thread& thread : threads) thread.join();
  return answered;
}

absl::Status RunSocketWorker(const Participant& participant, const SocketOptions& options) {
  const auto address = ParseAddress(participant.address);
  if (!address.ok()) return address.status();
  const auto socket = Connect(options.congestion, *address);
  if (!socket.ok()) return socket.status();
  const std::vector<float> sent = SyntheticGradient(participant.elements);
  std::vector<float> received(participant.elements);
  uint64_t rounds = 0;
  const absl::Status answered = AnswerParent("", [&] {
    ++rounds;
    return Send(**socket, sent) && Receive(**socket, received)
               ? absl::OkStatus()
               : absl::UnavailableError("the server hung up");
  });
  if (!answered.ok()) return answered;
  if (options.sgd) return CheckParameters(sent, rounds, received);
  if (sent == received) return absl::OkStatus();
  return absl::InternalError("what came back is not what was sent");
}

absl::Status ProbeCongestion(const std::string& algorithm) {
  const Socket probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return SetCongestion(probe, algorithm);
}

}  // namespace sluice::bench

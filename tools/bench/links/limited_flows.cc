#include "tools/bench/links/limited_flows.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"

namespace sluice::bench {
namespace {

constexpr size_t kBuffer = 1 << 18;

absl::Status Failed(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

absl::StatusOr<sockaddr_in> NameOf(const Address& address) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &name.sin_addr) == 1) return name;
  return absl::InvalidArgumentError(
      absl::StrCat(address.host, " is no IPv4 address, which this relay needs"));
}

const sockaddr* Generic(const sockaddr_in& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

bool Pace(int fd, uint32_t bytes_per_second) {
  return setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
                    sizeof(bytes_per_second)) == 0;
}

void Copy(int from, int to) {
  std::vector<char> buffer(kBuffer);
  for (;;) {
    const ssize_t size = read(from, buffer.data(), buffer.size());
    if (size <= 0) break;
    ssize_t at = 0;
    while (at < size) {
      const ssize_t sent = send(to, buffer.data() + at, size - at, MSG_NOSIGNAL);
      if (sent <= 0) break;
      at += sent;
    }
    if (at < size) break;
  }
  shutdown(to, SHUT_WR);
}

// Relays one connection both ways.
class Flow {
 public:
  Flow(FileDescriptor worker, FileDescriptor server)
      : worker_(std::move(worker)),
        server_(std::move(server)),
        there_([this] { Copy(worker_.get(), server_.get()); }),
        back_([this] { Copy(server_.get(), worker_.get()); }) {}
  ~Flow() {
    shutdown(worker_.get(), SHUT_RDWR);
    shutdown(server_.get(), SHUT_RDWR);
    there_.join();
    back_.join();
  }

 private:
  const FileDescriptor worker_;
  const FileDescriptor server_;
  std::thread there_;
  std::thread back_;
};

class Relay final : public LimitedFlows {
 public:
  Relay(FileDescriptor listening, Address address, const sockaddr_in& server,
        uint32_t bytes_per_second)
      : listening_(std::move(listening)),
        address_(std::move(address)),
        server_(server),
        bytes_per_second_(bytes_per_second),
        thread_([this] { Accept(); }) {}

  ~Relay() override {
    shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }

  const Address& address() const override { return address_; }

 private:
  void Accept() {
    std::list<Flow> flows;
    for (;;) {
      FileDescriptor worker(accept(listening_.get(), nullptr, nullptr));
      if (!worker.ok()) return;
      FileDescriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!Pace(worker.get(), bytes_per_second_) || !Pace(server.get(), bytes_per_second_)) return;
      if (connect(server.get(), Generic(server_), sizeof(server_)) != 0) continue;
      const int on = 1;
      setsockopt(server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(worker.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      flows.emplace_back(std::move(worker), std::move(server));
    }
  }

  const FileDescriptor listening_;
  const Address address_;
  const sockaddr_in server_;
  const uint32_t bytes_per_second_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LimitedFlows>> LimitedFlows::Start(const std::string& host,
                                                                  const Address& server,
                                                                  uint32_t bytes_per_second) {
  Address address;
  address.host = host;
  auto name = NameOf(address);
  if (!name.ok()) return name.status();
  const auto target = NameOf(server);
  if (!target.ok()) return target.status();
  FileDescriptor listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof(*name);
  if (!listening.ok() || bind(listening.get(), Generic(*name), size) != 0 ||
      listen(listening.get(), SOMAXCONN) != 0 ||
      getsockname(listening.get(), reinterpret_cast<sockaddr*>(&*name), &size) != 0) {
    return Failed("a relay cannot listen");
  }
  address.port = ntohs(name->sin_port);
  return std::unique_ptr<LimitedFlows>(
      std::make_unique<Relay>(std::move(listening), address, *target, bytes_per_second));
}

}  // namespace sluice::bench

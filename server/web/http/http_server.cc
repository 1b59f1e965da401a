#include "server/web/http/http_server.h"

#include <glog/logging.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/random.h"
#include "common/base/thread_name.h"
#include "common/net/listening_sockets.h"
#include "server/web/http/http_daemon.h"

namespace sluice {
namespace {

constexpr absl::Duration kUnacknowledged = absl::Seconds(10);
constexpr int kMostAccepts = 64;          // at once, of a socket
constexpr int kSweepMilliseconds = 1000;  // how often connections whose time is over are closed
// The pause before it accepts again, after the system had no memory or no free descriptor.
constexpr int kPauseMilliseconds = 100;
// How long streams have to send the last message when the listener ends.
constexpr absl::Duration kFarewell = absl::Seconds(3);
constexpr absl::Duration kBetweenLogLines = absl::Seconds(10);

std::string NumericPeer(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  char text[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  getnameinfo(reinterpret_cast<sockaddr*>(&name), size, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  return std::string(absl::StripPrefix(text, "::ffff:"));
}

bool IsSame(const Credentials& a, const Credentials& b) {
  return a.certificate == b.certificate && a.key == b.key && a.authority == b.authority;
}

class HttpServerOnSockets final : public HttpServer {
 public:
  HttpServerOnSockets(const HttpOptions& options, ListeningSockets listening,
                      std::vector<HttpRoute> routes)
      : credentials_(options.credentials),
        connections_(options.limits, RealClock()),
        listening_(std::move(listening)),
        end_(eventfd(0, EFD_CLOEXEC)) {
    site_.routes = std::move(routes);
    site_.limits = options.limits;
    site_.token = options.token;
    site_.needs_credentials = !options.address.IsLocal();
    site_.host = absl::AsciiStrToLower(options.address.host);
    site_.connections = &connections_;
    site_.change_key = RandomHex(16);
  }

  ~HttpServerOnSockets() override {
    eventfd_write(end_.get(), 1);
    if (thread_.joinable()) thread_.join();
    site_.ends = true;
    for (const HttpRoute& route : site_.routes) {
      if (route.feed != nullptr) route.feed->Close();
    }
    if (site_.streams > 0) site_.no_streams.WaitFor(kFarewell);
  }

  absl::Status Start() {
    const absl::Status started = StartDaemon();
    if (!started.ok()) return started;
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const Address& address() const override { return listening_.address(); }
  std::string url() const override {
    return absl::StrCat(credentials_ != nullptr ? "https://" : "http://", address().ToString(),
                        "/");
  }

 private:
  // A daemon with the credentials of now. It takes the next connections; earlier daemons keep
  // theirs.
  absl::Status StartDaemon() {
    Credentials credentials;
    if (credentials_ != nullptr) {
      auto got = credentials_();
      if (!got.ok()) return got.status();
      credentials = *std::move(got);
    }
    if (!daemons_.empty() && IsSame(credentials, daemons_.back()->credentials())) {
      return absl::OkStatus();
    }
    auto started = HttpDaemon::Start(site_, std::move(credentials));
    if (!started.ok()) return started.status();
    daemons_.push_back(*std::move(started));
    return absl::OkStatus();
  }

  void Run() {
    NameThisThread("sluice-web");
    std::vector<pollfd> waits = {{end_.get(), POLLIN, 0}};
    for (const FileDescriptor& socket : listening_.sockets()) {
      waits.push_back({socket.get(), POLLIN, 0});
    }
    while (true) {
      poll(waits.data(), waits.size(), kSweepMilliseconds);
      if (waits[0].revents != 0) return;
      bool accepts = true;
      for (const FileDescriptor& socket : listening_.sockets()) accepts &= AcceptSome(socket);
      Sweep();
      pollfd end = {end_.get(), POLLIN, 0};
      if (!accepts) poll(&end, 1, kPauseMilliseconds);
    }
  }

  // Not all: a flood of connections would keep it from Sweep() and from its end. Returns false if
  // the system has no memory or no free descriptor.
  bool AcceptSome(const FileDescriptor& socket) {
    for (int i = 0; i < kMostAccepts; ++i) {
      FileDescriptor accepted = listening_.Accept(socket);
      if (accepted.ok()) {
        Take(std::move(accepted));
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return errno == EAGAIN;
      }
    }
    return true;
  }

  void Take(FileDescriptor accepted) {
    if (!connections_.Add(accepted.get(), NumericPeer(accepted.get()))) return;
    const absl::Status ready = credentials_ == nullptr ? absl::OkStatus() : StartDaemon();
    if (!ready.ok()) Say(ready);
    daemons_.back()->Take(std::move(accepted));
  }

  // The certificate's files may be wrong for a moment; then the previous ones serve on.
  void Say(const absl::Status& error) {
    if (RealClock().Now() - said_ < kBetweenLogLines) return;
    said_ = RealClock().Now();
    LOG(WARNING) << "the listener at " << address().ToString()
                 << " keeps its certificate: " << error.message();
  }

  void Sweep() {
    connections_.Sweep();
    const auto is_over = [this](const std::unique_ptr<HttpDaemon>& daemon) {
      return daemon != daemons_.back() && daemon->idle();
    };
    daemons_.erase(std::remove_if(daemons_.begin(), daemons_.end() - 1, is_over),
                   daemons_.end() - 1);
  }

  const CredentialsSource credentials_;
  HttpConnections connections_;
  HttpSite site_;
  const ListeningSockets listening_;
  const FileDescriptor end_;  // an eventfd that the destructor writes to
  // The last one takes new connections. Only the thread uses them once it runs.
  std::vector<std::unique_ptr<HttpDaemon>> daemons_;
  absl::Time said_ = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace

absl::Status CheckHttpOptions(const HttpOptions& options, bool plaintext_allowed,
                              const std::string& flag) {
  const std::string given = absl::StrCat(flag, "=", options.address.ToString());
  if (options.address.is_unix()) {
    return absl::InvalidArgumentError(
        absl::StrCat(given, " is a unix socket, which no browser can open; give host:port"));
  }
  if (options.address.IsLocal() || options.credentials != nullptr) return absl::OkStatus();
  if (!plaintext_allowed) {
    return absl::InvalidArgumentError(absl::StrCat(
        given,
        " is beyond loopback, where the network could read all of it; give --tls-cert, --tls-key "
        "and --tls-ca, or an address on loopback (and reach it by ssh -L), or, where everybody on "
        "the network is trusted, --insecure-on-network and --token-file"));
  }
  if (!options.token.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(given, " is beyond loopback, where everybody could read it; give --token-file"));
}

absl::StatusOr<std::unique_ptr<HttpServer>> StartHttpServer(const HttpOptions& options,
                                                            std::vector<HttpRoute> routes) {
  auto listening = ListeningSockets::Open(options.address, kUnacknowledged);
  if (!listening.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address.ToString(),
                                               ": ", listening.status().message()));
  }
  auto server =
      std::make_unique<HttpServerOnSockets>(options, *std::move(listening), std::move(routes));
  const absl::Status started = server->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<HttpServer>(std::move(server));
}

void HttpListeners::Add(const HttpOptions& options, std::vector<HttpRoute> routes) {
  for (Listener& listener : listeners_) {
    if (listener.options.address.ToString() != options.address.ToString()) continue;
    std::move(routes.begin(), routes.end(), std::back_inserter(listener.routes));
    return;
  }
  listeners_.push_back({options, std::move(routes), nullptr});
}

absl::Status HttpListeners::Start() {
  for (Listener& listener : listeners_) {
    auto started = StartHttpServer(listener.options, listener.routes);
    if (!started.ok()) return started.status();
    listener.server = *std::move(started);
  }
  return absl::OkStatus();
}

const HttpServer* HttpListeners::Of(const std::string& path) const {
  for (const Listener& listener : listeners_) {
    for (const HttpRoute& route : listener.routes) {
      if (route.path == path) return listener.server.get();
    }
  }
  return nullptr;
}

}  // namespace sluice

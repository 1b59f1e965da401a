#include "server/web/http/http_daemon.h"

#include <glog/logging.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "server/web/http/client_certificate.h"
#include "server/web/http/http_call.h"

namespace sluice {

// What the library calls, on its thread.
struct HttpCallbacks {
  // Called when the headers are there, again for each part of a body, and when all is there.
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* path,
                              const char* method, const char*, const char* part, size_t* size,
                              void** call) {
    const HttpDaemon& daemon = *static_cast<HttpDaemon*>(self);
    if (*call == nullptr) {
      auto* const begun = new HttpCall(daemon.site_, daemon.credentials_, connection, method, path);
      *call = begun;
      return begun->Begin() ? MHD_YES : MHD_NO;
    }
    auto& under_way = *static_cast<HttpCall*>(*call);
    if (*size == 0) return under_way.Answer() ? MHD_YES : MHD_NO;
    under_way.AddToBody({part, *size});
    *size = 0;
    return MHD_YES;
  }

  static void OnCompleted(void* self, MHD_Connection* connection, void** call,
                          MHD_RequestTerminationCode) {
    delete static_cast<HttpCall*>(*call);
    *call = nullptr;
    static_cast<HttpDaemon*>(self)->site_.connections->Renew(Socket(connection));
  }

  static void OnConnection(void* self, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode what) {
    auto& daemon = *static_cast<HttpDaemon*>(self);
    if (what != MHD_CONNECTION_NOTIFY_CLOSED) return;
    daemon.site_.connections->Remove(Socket(connection));  // before the descriptor is closed
    --daemon.open_;
  }

  static int Socket(MHD_Connection* connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  }
};

absl::StatusOr<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(HttpSite& site,
                                                              Credentials credentials) {
  CHECK_LE(site.limits.connections, kMostHttpConnections);
  std::unique_ptr<HttpDaemon> made(new HttpDaemon(site, std::move(credentials)));
  const Credentials& own = made->credentials_;
  unsigned flags =
      MHD_USE_EPOLL_INTERNALLY | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
  std::vector<MHD_OptionItem> tls;
  if (!own.key.empty()) {
    flags |= MHD_USE_TLS;
    const auto text = [](const char* words) { return const_cast<char*>(words); };
    tls = {{MHD_OPTION_HTTPS_MEM_KEY, 0, text(own.key.c_str())},
           {MHD_OPTION_HTTPS_MEM_CERT, 0, text(own.certificate.c_str())},
           {MHD_OPTION_HTTPS_MEM_TRUST, 0, text(own.authority.c_str())},
           {MHD_OPTION_HTTPS_PRIORITIES, 0, text(kTlsPriorities)}};
  }
  tls.push_back({MHD_OPTION_END, 0, nullptr});
  made->daemon_ = MHD_start_daemon(
      flags, 0, nullptr, nullptr, HttpCallbacks::OnRequest, made.get(),  //
      MHD_OPTION_NOTIFY_COMPLETED, HttpCallbacks::OnCompleted, made.get(),
      MHD_OPTION_NOTIFY_CONNECTION, HttpCallbacks::OnConnection, made.get(),
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(site.limits.connections + 1),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, site.limits.header_bytes, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_ARRAY, tls.data(), MHD_OPTION_END);
  if (made->daemon_ != nullptr) return made;
  return absl::InternalError(
      "libmicrohttpd does not start; it may be unable to use the certificate");
}

HttpDaemon::~HttpDaemon() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

void HttpDaemon::Take(FileDescriptor accepted) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  getpeername(accepted.get(), reinterpret_cast<sockaddr*>(&peer), &size);
  const int socket = accepted.Release();
  ++open_;
  if (MHD_add_connection(daemon_, socket, reinterpret_cast<sockaddr*>(&peer), size) == MHD_YES) {
    return;
  }
  // The library has closed it.
  --open_;
  site_.connections->Remove(socket);
}

}  // namespace sluice

// Reads requests, asks the rules and the routes, and writes responses. The only code that uses
// libmicrohttpd. A listener has one, and another one each time its certificate changes.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_DAEMON_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_DAEMON_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"
#include "common/base/stop_flag.h"
#include "common/security/certificates.h"
#include "server/web/http/http_connections.h"
#include "server/web/http/http_route.h"

struct MHD_Daemon;

namespace sluice {

// What all daemons of a listener share. Outlives them.
struct HttpSite {
  std::vector<HttpRoute> routes;
  HttpLimits limits;
  std::string token;               // empty: there is none
  std::string change_key;          // random; see HttpRequest
  bool needs_credentials = false;  // whether callers of routes that are not open need them
  std::string host;                // a name at which it may be called, beside those below
  HttpConnections* connections = nullptr;
  std::atomic<size_t> streams{0};  // that are open
  std::atomic<bool> ends{false};   // the feeds are closed, or soon will be
  StopFlag no_streams;             // raised when it ends and the last stream is over
};

// Has a thread, which serves all connections and calls the routes. Before the destructor, the feeds
// must be closed; it closes all connections.
class HttpDaemon {
 public:
  // With credentials it speaks TLS. INTERNAL if the library does not start, for example because it
  // cannot use the certificate.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(HttpSite& site, Credentials credentials);
  ~HttpDaemon();

  HttpDaemon(const HttpDaemon&) = delete;
  HttpDaemon& operator=(const HttpDaemon&) = delete;

  // Serves a connection that is in site.connections.
  void Take(FileDescriptor accepted);

  bool idle() const { return open_ == 0; }  // it has no connection
  const Credentials& credentials() const { return credentials_; }

 private:
  friend struct HttpCallbacks;

  HttpDaemon(HttpSite& site, Credentials credentials)
      : site_(site), credentials_(std::move(credentials)) {}

  HttpSite& site_;
  const Credentials credentials_;  // without a key: plaintext
  std::atomic<int> open_{0};
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_DAEMON_H_

// An HTTP listener: one address, its routes, its rules. The live page and the metrics use it.
//
// It has two threads of its own, one that accepts and one that serves. gRPC's threads never run it,
// and no reader of it, however slow, makes anybody else wait.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_SERVER_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/address.h"
#include "common/security/credentials_source.h"
#include "server/web/http/http_connections.h"
#include "server/web/http/http_route.h"

namespace sluice {

struct HttpOptions {
  Address address;  // of TCP; port 0 means any free port
  // Beyond loopback, callers of routes that are not open present this token or, with TLS, a
  // certificate with a role. Empty: there is no token. POST needs what gRPC's Admin needs: the
  // token, if there is one, and with TLS a certificate with the role admin.
  std::string token;
  CredentialsSource credentials;  // for TLS; empty: plaintext
  HttpLimits limits = {};
};

// OK if a listener with these options is safe: on loopback, with TLS, or, on a trusted network
// (`plaintext_allowed`), with a token. Otherwise INVALID_ARGUMENT says what is missing. `flag` is
// the flag that gave the address.
absl::Status CheckHttpOptions(const HttpOptions& options, bool plaintext_allowed,
                              const std::string& flag);

// Listens until it is destroyed, which closes the feeds of its routes and all connections.
class HttpServer {
 public:
  virtual ~HttpServer() = default;

  virtual const Address& address() const = 0;
  // Its address as a browser wants it: "http://127.0.0.1:8080/".
  virtual std::string url() const = 0;
};

// UNAVAILABLE says why it cannot listen, for example because the port is in use. Other errors are
// those of the credentials.
absl::StatusOr<std::unique_ptr<HttpServer>> StartHttpServer(const HttpOptions& options,
                                                            std::vector<HttpRoute> routes);

// One listener for each address, whose routes may come from several places.
class HttpListeners {
 public:
  // Those of one address have the same options.
  void Add(const HttpOptions& options, std::vector<HttpRoute> routes);

  // Starts all. Errors are those of StartHttpServer().
  absl::Status Start();

  // The listener with a route of that path, after Start(); null if there is none.
  const HttpServer* Of(const std::string& path) const;

 private:
  struct Listener {
    HttpOptions options;
    std::vector<HttpRoute> routes;
    std::unique_ptr<HttpServer> server;
  };

  std::vector<Listener> listeners_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_SERVER_H_

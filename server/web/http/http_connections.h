// The open connections of a listener: how many there are, whose they are, and until when each must
// have moved on.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_CONNECTIONS_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_CONNECTIONS_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace sluice {

// The most connections that a listener may have. libmicrohttpd takes up to 128 events from epoll at
// a time. If it gets 128, it waits for another event before it serves any of them. Each connection
// has one event at a time, and the library has one for itself. So there are never 128.
inline constexpr size_t kMostHttpConnections = 120;

struct HttpLimits {
  size_t connections = kMostHttpConnections;  // at once, at most that; further ones are closed
  size_t served = 96;                         // of these; requests of the others get 503
  // At once, of an address that is not loopback; of IPv6, of a network /64, which one peer may own.
  size_t of_one_address = 48;
  size_t streams = 64;  // of events, at once; further ones get 503
  size_t header_bytes = 16384;
  size_t body_bytes = 16384;
  // For a handshake, a request with its answer, or an event of a stream; and for the silence
  // between two requests of a connection.
  absl::Duration exchange = absl::Seconds(20);
};

// Safe to use from any thread. A connection is named by its descriptor, from before the library
// that serves it gets the descriptor until just before the library closes it.
class HttpConnections {
 public:
  HttpConnections(const HttpLimits& limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // Returns false if there is no place for a connection of this numeric address.
  bool Add(int fd, const std::string& peer);
  void Remove(int fd);

  // It has begun something, for which it has `exchange` time.
  void Renew(int fd);
  // It is a stream that waits for the next event, for as long as that takes.
  void Rest(int fd);

  // Whether it is beyond those that the listener serves. A connection that is served stays so.
  bool crowded_out(int fd) const;

  // Shuts down those whose time is over. The library then notices that they have ended.
  void Sweep();

 private:
  struct Connection {
    std::string peer;  // or its network
    bool served;
    absl::Time until;
  };

  const HttpLimits limits_;
  const Clock& clock_;
  mutable absl::Mutex mu_;
  std::map<int, Connection> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_CONNECTIONS_H_

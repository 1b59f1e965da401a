#include "common/net/bind_check.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"

namespace sluice {

std::string WhyNotBindable(const Address& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (code != 0) return gai_strerror(code);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> results(found, freeaddrinfo);
  const FileDescriptor probe(socket(results->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(probe.get(), results->ai_addr, results->ai_addrlen) != 0) return strerror(errno);
  // Linux lets two sockets bind with SO_REUSEADDR and objects when the second one listens.
  return listen(probe.get(), 1) != 0 ? strerror(errno) : "unknown reason";
}

}  // namespace sluice

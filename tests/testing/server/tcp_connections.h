// How many TCP connections there are to a server.

#ifndef SLUICE_TESTS_TESTING_SERVER_TCP_CONNECTIONS_H_
#define SLUICE_TESTS_TESTING_SERVER_TCP_CONNECTIONS_H_

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace sluice {

// The TCP connections of this machine to that port of 127.0.0.1, see proc(5). gRPC uses sockets of
// IPv6 for them.
inline int ConnectionsTo(uint16_t port) {
  const std::string established = absl::StrFormat("0100007F:%04X 01 ", port);
  int count = 0;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream table(path);
    for (std::string line; std::getline(table, line);) {
      count += absl::StrContains(line, established) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_TCP_CONNECTIONS_H_

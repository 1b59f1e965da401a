// A client of the listener that sends any bytes, and reads what comes.

#ifndef SLUICE_TESTS_SERVER_WEB_HTTP_RAW_CLIENT_H_
#define SLUICE_TESTS_SERVER_WEB_HTTP_RAW_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"
#include "common/net/address.h"
#include "gtest/gtest.h"

namespace sluice {

class RawClient {
 public:
  // `receive_bytes`: how much the system takes for a client that does not read; 0: its default.
  explicit RawClient(const Address& server, int receive_bytes = 0)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(server.port);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }

  // Whether all could be sent.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // A request without a body, with further lines of headers.
  bool Ask(absl::string_view method_and_path, absl::string_view headers = "Host: localhost\r\n") {
    return Send(absl::StrCat(method_and_path, " HTTP/1.1\r\n", headers, "\r\n"));
  }

  // What has come when `text` has come, or all if the connection ends before.
  const std::string& ReadUntil(absl::string_view text) {
    char block[65536];
    while (!absl::StrContains(read_, text)) {
      const ssize_t got = recv(socket_.get(), block, sizeof(block), 0);
      if (got <= 0) break;
      read_.append(block, static_cast<size_t>(got));
    }
    return read_;
  }
  // All until the connection ends.
  const std::string& ReadAll() { return ReadUntil(kNever); }

  // The status of the next response, of which only the headers are read; 0 if there is none.
  int Status() {
    read_.clear();
    ReadUntil("\r\n\r\n");
    return absl::StartsWith(read_, "HTTP/1.1 ") ? atoi(read_.c_str() + 9) : 0;
  }

 private:
  static constexpr absl::string_view kNever{"\0never\0", 7};

  FileDescriptor socket_;
  std::string read_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_WEB_HTTP_RAW_CLIENT_H_

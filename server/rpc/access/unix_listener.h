// Accepts the connections to a unix socket and hands them to gRPC; see common/net/unix_socket.h.

#ifndef SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_
#define SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Has a thread of its own. The destructor stops it and removes the socket's file.
class UnixListener {
 public:
  // Starts to listen. Calls `connected` on its thread for each connection. UNAVAILABLE says why it
  // cannot listen.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const std::string& path, std::function<void(FileDescriptor)> connected);
  ~UnixListener();

  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(const std::string& path, FileDescriptor listening, FileDescriptor end,
               std::function<void(FileDescriptor)> connected);

  void Listen();

  const std::string path_;
  const FileDescriptor listening_;
  const FileDescriptor end_;  // an eventfd that the destructor writes to
  const std::function<void(FileDescriptor)> connected_;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_

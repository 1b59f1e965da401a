// Takes the connections to a unix socket.

#ifndef SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_
#define SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Has a thread of its own. Its end removes the socket.
class UnixListener {
 public:
  // `connected` is called on that thread. UNAVAILABLE says why it cannot listen.
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
  const FileDescriptor end_;  // an eventfd: written to when it is time to end
  const std::function<void(FileDescriptor)> connected_;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_UNIX_LISTENER_H_

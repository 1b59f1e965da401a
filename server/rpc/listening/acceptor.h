// Accepts the connections to the server, hands them to gRPC, and closes those that do harm.
//
// gRPC 1.51 does not limit connections, and if the process once has no free descriptor, it never
// accepts again. So the server accepts by itself.

#ifndef SLUICE_SERVER_RPC_LISTENING_ACCEPTOR_H_
#define SLUICE_SERVER_RPC_LISTENING_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"
#include "common/net/listening_sockets.h"
#include "server/rpc/listening/call_counter.h"
#include "server/rpc/listening/connections.h"

namespace sluice {

struct AcceptorOptions {
  ConnectionLimits limits;
  // Takes each accepted connection. Called on the acceptor's thread.
  std::function<void(FileDescriptor)> serve;
  // The gRPC server (see LatestGrpcServer()) to which `serve` hands the connections.
  int64_t grpc_server = 0;
};

// Has a thread of its own. The destructor stops it and closes the listening sockets; connections
// that gRPC has taken stay open.
class Acceptor {
 public:
  // `calls` counts each call that begins, and outlives the acceptor. UNAVAILABLE has the system's
  // message.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(ListeningSockets listening,
                                                         AcceptorOptions options,
                                                         CallCounter& calls);
  ~Acceptor();

  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  const Address& address() const { return listening_.address(); }

 private:
  Acceptor(ListeningSockets listening, AcceptorOptions options, CallCounter& calls,
           FileDescriptor events);

  // All below are called on the thread.
  void Run();
  int WaitTime(absl::Duration now) const;
  void Handle(int fd, absl::Duration now);
  void AcceptAll(const FileDescriptor& socket, absl::Duration now);
  void Take(FileDescriptor accepted, absl::Duration now);
  void HandleError(const FileDescriptor& socket, int error, absl::Duration now);
  void JudgeIfDue(absl::Duration now);
  void JudgeNow(Connections::Which which, absl::Duration now);
  void Listen(bool on);
  void Say(const std::string& what, absl::Duration now);

  const ListeningSockets listening_;
  const AcceptorOptions options_;
  CallCounter& calls_;
  const FileDescriptor events_;  // epoll
  const FileDescriptor end_;     // an eventfd that the destructor writes to
  FileDescriptor spare_;         // for when there is no other
  Connections connections_;
  bool ended_ = false;
  bool many_calls_ = false;                            // have begun since the last judgement
  absl::Duration judged_ = -absl::InfiniteDuration();  // when all connections were judged
  absl::Duration looked_ = -absl::InfiniteDuration();  // when the bytes of all were looked at
  absl::Duration paused_until_ = -absl::InfiniteDuration();
  bool listens_ = true;
  absl::Duration said_ = -absl::InfiniteDuration();  // when the log had the last line
  uint64_t unsaid_ = 0;                              // lines that it did not get since then
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_ACCEPTOR_H_

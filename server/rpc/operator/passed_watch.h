// WatchState at a server that passes it on to the first server: one object per call.

#ifndef SLUICE_SERVER_RPC_OPERATOR_PASSED_WATCH_H_
#define SLUICE_SERVER_RPC_OPERATOR_PASSED_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/rpc/operator/open_watches.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {

// Reads a state from the first server, writes it to the caller, and reads the next one: so a slow
// caller keeps one state here. Deletes itself when both calls are done.
class PassedWatch final : public grpc::ServerWriteReactor<v1::ServerState>, public OpenWatch {
 public:
  // A call to the first server that may be made.
  struct Open {
    absl::Status status;  // if it is an error, the call ends with it, and `stub` may be null
    std::shared_ptr<v1::Inspector::Stub> stub;
    std::unique_ptr<grpc::ClientContext> context;
    std::function<grpc::Status(const grpc::Status&)> translate;  // the first server's end
    std::function<void()> done;                                  // when both calls are
  };

  // `watches` outlives it.
  PassedWatch(const v1::WatchStateRequest& request, Open open, OpenWatches& watches);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { open_.context->TryCancel(); }
  void OnDone() override;
  // The server goes down: the stream ends with OK.
  void End() override;

 private:
  class Source final : public grpc::ClientReadReactor<v1::ServerState> {
   public:
    explicit Source(PassedWatch& watch) : watch_(watch) {}
    void OnReadDone(bool ok) override { watch_.OnRead(ok); }
    void OnDone(const grpc::Status& status) override { watch_.OnSourceDone(status); }

   private:
    PassedWatch& watch_;
  };

  void OnRead(bool ok);
  void OnSourceDone(const grpc::Status& status);

  const v1::WatchStateRequest request_;
  const Open open_;
  OpenWatches& watches_;
  Source source_{*this};
  v1::ServerState state_;
  std::atomic<bool> ending_{false};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_PASSED_WATCH_H_

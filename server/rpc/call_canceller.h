// Cancels a call from any thread, even if the call has ended.
//
// grpc::CallbackServerContext::TryCancel() may be called only while the call's reactor lives. A
// canceller holds the call itself, so it needs neither the context nor the reactor.

#ifndef SLUICE_SERVER_RPC_CALL_CANCELLER_H_
#define SLUICE_SERVER_RPC_CALL_CANCELLER_H_

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

namespace sluice {

// May be used by any thread. A canceller keeps the call's memory, but not the messages that it
// sends: destroy it soon after the call.
class CallCanceller {
 public:
  // The call has not ended yet.
  explicit CallCanceller(grpc::CallbackServerContext& context) : call_(context.c_call()) {
    grpc_call_ref(call_);
  }
  ~CallCanceller() { grpc_call_unref(call_); }

  CallCanceller(const CallCanceller&) = delete;
  CallCanceller& operator=(const CallCanceller&) = delete;

  // Resets the stream, which frees the messages that it still had to send. The caller of the RPC
  // gets CANCELLED. Does nothing if the call has ended.
  void Cancel() {
    grpc_call_cancel_with_status(call_, GRPC_STATUS_CANCELLED, "cancelled by the server", nullptr);
  }

 private:
  grpc_call* const call_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_CALL_CANCELLER_H_

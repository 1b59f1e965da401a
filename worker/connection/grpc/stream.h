// One gRPC call whose messages are bytes. The thread that uses it polls the call's own completion
// queue, so no message is handed from one thread to another.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_
#define SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "worker/connection/grpc/call.h"

namespace sluice {

// Whether another message follows. gRPC may delay a message to send it together with the next.
enum class Follows { kNothing, kMore, kMoreAtOnce };

// Used by one thread, except Cancel().
class GrpcStream {
 public:
  // `method` is "/package.Service/Method". Nothing is sent before the first message.
  GrpcStream(grpc::GenericStub& stub, const std::string& method, absl::Duration timeout,
             const CallMetadata& metadata);
  // Cancels the call, unless Finish() was called.
  ~GrpcStream();

  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  // Blocks until gRPC has taken the message. gRPC may use its memory for longer, even after the
  // call has ended. False if the call has ended: then send no more; Finish() returns the reason.
  bool Write(const grpc::ByteBuffer& message, Follows follows);

  // Says that no more messages follow, if the last one did not say so.
  void EndWrites();

  // Blocks until the next answer. False if there is none, because the call has ended.
  bool Read(grpc::ByteBuffer* answer);

  // Blocks until Read() would not, for `longest` at most. Returns whether it would not. After
  // false, Read() comes before any Write().
  bool AwaitAnswer(absl::Duration longest);

  // Any thread may call this.
  void Cancel() { context_.TryCancel(); }

  // Waits for the end of the call. Called once, after all answers were read or after Cancel().
  grpc::Status Finish();

 private:
  bool Wait();
  void StartRead();
  void EndRead();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  // Of the read under way, or of an answer that was not taken yet.
  enum class Reading { kNot, kWaits, kDone };
  Reading reading_ = Reading::kNot;
  bool came_ = false;
  grpc::ByteBuffer answer_;
  bool finished_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_

// One call whose messages are bytes, driven by the thread that uses it: it polls the call's own
// completion queue, so that no message is handed from thread to thread.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_
#define SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace sluice {

// What follows a message, for gRPC to send them together.
enum class Follows { kNothing, kMore, kMoreAtOnce };

// For one thread.
class GrpcStream {
 public:
  // `method` is "/package.Service/Method". Nothing is sent before the first message.
  GrpcStream(grpc::GenericStub& stub, const std::string& method, absl::Duration timeout,
             const std::string& token);
  // Gives the call up, unless it was finished.
  ~GrpcStream();

  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  // Blocks until gRPC has taken the message. Its memory may be in use for longer: also after the
  // call has ended. False if the call has ended, which Finish() explains; send no more then.
  bool Write(const grpc::ByteBuffer& message, Follows follows);

  // No more messages follow, if that was not said with the last.
  void EndWrites();

  // The next answer. False if there is none: the call has ended.
  bool Read(grpc::ByteBuffer* answer);

  // May be called by any thread.
  void Cancel() { context_.TryCancel(); }

  // Waits for the end of the call, after all answers were read or it was cancelled; once.
  grpc::Status Finish();

 private:
  bool Wait();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_STREAM_H_

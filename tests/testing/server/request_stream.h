// An RPC with a stream of requests that a test keeps open, breaks or ends.

#ifndef SLUICE_TESTS_TESTING_SERVER_REQUEST_STREAM_H_
#define SLUICE_TESTS_TESTING_SERVER_REQUEST_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/wire/status.h"

namespace sluice {

// Used by one thread.
template <typename Request, typename Response>
class RequestStream {
 public:
  // `start` is the stub's method.
  template <typename Start>
  RequestStream(std::unique_ptr<grpc::ClientContext> context, const Start& start)
      : context_(std::move(context)), writer_(start(context_.get(), &response_)) {}

  // Sends a message. False if the call has ended, for example because the server has answered.
  bool Write(const Request& message) { return writer_->Write(message); }
  void End() { writer_->WritesDone(); }
  void Cancel() { context_->TryCancel(); }

  // Waits for the answer or for the error. Called once, with or without End() before.
  absl::StatusOr<Response> Answer() {
    const absl::Status status = FromGrpcStatus(writer_->Finish());
    if (!status.ok()) return status;
    return response_;
  }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  Response response_;
  const std::unique_ptr<grpc::ClientWriter<Request>> writer_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_REQUEST_STREAM_H_

// An RPC without message types: it sends bytes and receives bytes.

#ifndef SLUICE_TESTS_TESTING_SERVER_GENERIC_CALL_H_
#define SLUICE_TESTS_TESTING_SERVER_GENERIC_CALL_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace sluice {

// One call of any kind, unary or streaming. Used by one thread, except Cancel().
class GenericCall {
 public:
  // `method` is "/package.Service/Method".
  GenericCall(grpc::GenericStub& stub, const std::string& method);
  ~GenericCall();

  bool Write(const std::string& request);
  void WritesDone();
  // The next answer; absent if there are no more.
  absl::optional<std::string> Read();
  // How the call ended. Called once, after Read() returned nothing.
  absl::Status Finish();
  void Cancel() { context_.TryCancel(); }

 private:
  bool Wait();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

// Makes a call with one request. OK if there is an answer; otherwise the status of the call.
absl::Status CallOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::string& request = "");

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_GENERIC_CALL_H_

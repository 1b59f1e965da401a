// A client that needs no .proto files and no stubs. Like grpcurl, it asks the server for its
// services by reflection, takes requests in JSON and returns answers in JSON.
//
// It knows only the fields of the reflection protocol that it needs; the .cc describes them. It
// learns all other messages from the server. Like today's grpcurl, it asks grpc.reflection.v1
// first, and v1alpha only if v1 is UNIMPLEMENTED.

#ifndef SLUICE_TESTS_TESTING_SERVER_REFLECTION_CLIENT_H_
#define SLUICE_TESTS_TESTING_SERVER_REFLECTION_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "tests/testing/server/generic_call.h"

namespace sluice {

// Used by one thread.
class ReflectionClient {
 public:
  struct Answer {
    std::string json;  // includes fields that have their default value
    size_t bytes = 0;  // on the wire
  };

  // A call with many answers.
  class Stream {
   public:
    // The next answer in JSON; absent at the end.
    absl::optional<std::string> Next();
    absl::Status Finish() { return call_->Finish(); }
    void Cancel() { call_->Cancel(); }

   private:
    friend class ReflectionClient;
    ReflectionClient* client_ = nullptr;
    const google::protobuf::Descriptor* answer_ = nullptr;
    std::unique_ptr<GenericCall> call_;
  };

  explicit ReflectionClient(const std::string& target);  // in plaintext
  explicit ReflectionClient(const std::shared_ptr<grpc::Channel>& channel);
  ~ReflectionClient();

  // The version of reflection that the server has, once it was asked: "v1" or "v1alpha".
  const std::string& version() const { return version_; }

  absl::StatusOr<std::vector<std::string>> ListServices();

  // The description of a service and of all types that it uses. It lives as long as the client.
  absl::StatusOr<const google::protobuf::ServiceDescriptor*> Describe(const std::string& service);

  // Calls "package.Service/Method" with a request in JSON.
  absl::StatusOr<Answer> Call(const std::string& method, const std::string& request = "{}");
  absl::StatusOr<Stream> Open(const std::string& method, const std::string& request = "{}");

 private:
  absl::StatusOr<std::string> Ask(const std::string& field, const std::string& value);
  absl::StatusOr<std::string> AskVersion(const std::string& request);
  absl::Status Learn(const std::string& field, const std::string& value);
  absl::Status Build(const std::string& file);
  absl::StatusOr<std::string> ToJson(const google::protobuf::Descriptor& type,
                                     const std::string& bytes);

  grpc::GenericStub stub_;
  std::string version_ = "v1";
  google::protobuf::DescriptorPool protocol_;  // of reflection itself
  google::protobuf::DescriptorPool pool_;      // what the server has described
  google::protobuf::DynamicMessageFactory factory_;
  std::map<std::string, google::protobuf::FileDescriptorProto> files_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_REFLECTION_CLIENT_H_

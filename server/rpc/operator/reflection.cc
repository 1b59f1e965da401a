#include "server/rpc/operator/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"

namespace sluice {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void AddWithImports(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
                    reflection::FileDescriptorResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto described;
  file.CopyTo(&described);
  response.add_file_descriptor_proto(described.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddWithImports(*file.dependency(i), seen, response);
  }
}

void AnswerNotFound(absl::string_view what, absl::string_view name,
                    ServerReflectionResponse& response) {
  reflection::ErrorResponse& error = *response.mutable_error_response();
  error.set_error_code(grpc::StatusCode::NOT_FOUND);
  error.set_error_message(absl::StrCat("no ", what, " \"", Shown(name), "\" is known here"));
}

void AnswerFile(const FileDescriptor* file, absl::string_view what, absl::string_view name,
                ServerReflectionResponse& response) {
  if (file == nullptr) {
    AnswerNotFound(what, name, response);
    return;
  }
  std::set<const FileDescriptor*> seen;
  AddWithImports(*file, seen, *response.mutable_file_descriptor_response());
}

void AnswerExtension(const reflection::ExtensionRequest& request,
                     ServerReflectionResponse& response) {
  const auto* const type = Pool().FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* const extension =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, request.extension_number());
  AnswerFile(extension == nullptr ? nullptr : extension->file(), "such extension of",
             request.containing_type(), response);
}

void AnswerExtensionNumbers(const std::string& name, ServerReflectionResponse& response) {
  const auto* const type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) {
    AnswerNotFound("message", name, response);
    return;
  }
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

class GrpcReflection final : public reflection::ServerReflection::CallbackService {
 public:
  explicit GrpcReflection(std::vector<std::string> services) : services_(std::move(services)) {}

  grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>* ServerReflectionInfo(
      grpc::CallbackServerContext*) override {
    return new Stream(*this);
  }

 private:
  // Reads a request only after the answer to the one before is written, so it holds one of each.
  class Stream final
      : public grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse> {
   public:
    explicit Stream(const GrpcReflection& service) : service_(service) { StartRead(&request_); }

    void OnReadDone(bool ok) override {
      if (!ok) {
        Finish(grpc::Status::OK);
        return;
      }
      response_.Clear();
      service_.Answer(request_, response_);
      StartWrite(&response_);
    }

    void OnWriteDone(bool ok) override {
      if (ok) {
        StartRead(&request_);
      } else {
        Finish(grpc::Status::CANCELLED);
      }
    }

    void OnDone() override { delete this; }

   private:
    const GrpcReflection& service_;
    ServerReflectionRequest request_;
    ServerReflectionResponse response_;
  };

  void Answer(const ServerReflectionRequest& request, ServerReflectionResponse& response) const {
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    switch (request.message_request_case()) {
      case ServerReflectionRequest::kFileByFilename:
        AnswerFile(Pool().FindFileByName(request.file_by_filename()), "file",
                   request.file_by_filename(), response);
        break;
      case ServerReflectionRequest::kFileContainingSymbol:
        AnswerFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                   request.file_containing_symbol(), response);
        break;
      case ServerReflectionRequest::kFileContainingExtension:
        AnswerExtension(request.file_containing_extension(), response);
        break;
      case ServerReflectionRequest::kAllExtensionNumbersOfType:
        AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
        break;
      case ServerReflectionRequest::kListServices:
        for (const std::string& name : services_) {
          response.mutable_list_services_response()->add_service()->set_name(name);
        }
        break;
      case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
        response.mutable_error_response()->set_error_code(grpc::StatusCode::UNIMPLEMENTED);
        response.mutable_error_response()->set_error_message(
            "the request asks for nothing that is known here");
        break;
    }
  }

  const std::vector<std::string> services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcReflection(std::vector<std::string> services) {
  return std::make_unique<GrpcReflection>(std::move(services));
}

}  // namespace sluice

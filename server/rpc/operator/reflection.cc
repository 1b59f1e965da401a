#include "server/rpc/operator/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/rpc/operator/public_descriptors.h"
#include "sluice/own/grpc/reflection/v1/reflection.pb.h"

namespace sluice {
namespace {

namespace reflection = own::grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;

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

void AnswerExtension(const DescriptorPool& pool, const reflection::ExtensionRequest& request,
                     ServerReflectionResponse& response) {
  const auto* const type = pool.FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* const extension =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, request.extension_number());
  AnswerFile(extension == nullptr ? nullptr : extension->file(), "such extension of",
             request.containing_type(), response);
}

void AnswerExtensionNumbers(const DescriptorPool& pool, const std::string& name,
                            ServerReflectionResponse& response) {
  const auto* const type = pool.FindMessageTypeByName(name);
  if (type == nullptr) {
    AnswerNotFound("message", name, response);
    return;
  }
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

// One class for both versions, whose messages have the same bytes. Generated code would need a copy
// of them for each.
class GrpcReflection final : public grpc::Service {
 public:
  GrpcReflection(const char* method, std::vector<std::string> services)
      : services_(std::move(services)) {
    using Handler =
        grpc::internal::CallbackBidiHandler<ServerReflectionRequest, ServerReflectionResponse>;
    AddMethod(new grpc::internal::RpcServiceMethod(
        method, grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodCallback(
        0, new Handler([this](grpc::CallbackServerContext*) { return new Stream(*this); }));
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
        AnswerFile(pool_.FindFileByName(request.file_by_filename()), "file",
                   request.file_by_filename(), response);
        break;
      case ServerReflectionRequest::kFileContainingSymbol:
        AnswerFile(pool_.FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                   request.file_containing_symbol(), response);
        break;
      case ServerReflectionRequest::kFileContainingExtension:
        AnswerExtension(pool_, request.file_containing_extension(), response);
        break;
      case ServerReflectionRequest::kAllExtensionNumbersOfType:
        AnswerExtensionNumbers(pool_, request.all_extension_numbers_of_type(), response);
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

  PublicDescriptors descriptors_;
  const DescriptorPool pool_{&descriptors_};
  const std::vector<std::string> services_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeGrpcReflection(
    const std::vector<std::string>& services) {
  std::vector<std::unique_ptr<grpc::Service>> versions;
  for (const char* const method :
       {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    versions.push_back(std::make_unique<GrpcReflection>(method, services));
  }
  return versions;
}

}  // namespace sluice

#include "tests/testing/server/reflection_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/wire/status.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"

namespace sluice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::Message;
using google::protobuf::ServiceDescriptor;

// The part of grpc/reflection/v1/reflection.proto that is used here. In v1alpha it has the same
// numbers.
constexpr char kProtocol[] = R"(
  name: "protocol" package: "protocol" syntax: "proto3"
  message_type {
    name: "Request"
    field { name: "file_by_filename" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "file_containing_symbol" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "list_services" number: 7 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
    oneof_decl { name: "message_request" }
  }
  message_type {
    name: "Response"
    field { name: "files" number: 4 type: TYPE_MESSAGE type_name: ".protocol.Files" label: LABEL_OPTIONAL }
    field { name: "services" number: 6 type: TYPE_MESSAGE type_name: ".protocol.Services" label: LABEL_OPTIONAL }
    field { name: "error" number: 7 type: TYPE_MESSAGE type_name: ".protocol.Error" label: LABEL_OPTIONAL }
  }
  message_type {
    name: "Files"
    field { name: "file" number: 1 type: TYPE_BYTES label: LABEL_REPEATED }
  }
  message_type {
    name: "Services"
    field { name: "service" number: 1 type: TYPE_MESSAGE type_name: ".protocol.Service" label: LABEL_REPEATED }
  }
  message_type {
    name: "Service"
    field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  }
  message_type {
    name: "Error"
    field { name: "code" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "message" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  })";

// Fields of dynamic messages, by name.
const FieldDescriptor* FieldOf(const Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}
bool Has(const Message& message, const char* name) {
  return message.GetReflection()->HasField(message, FieldOf(message, name));
}
const Message& Child(const Message& message, const char* name) {
  return message.GetReflection()->GetMessage(message, FieldOf(message, name));
}
std::string Text(const Message& message, const char* name) {
  return message.GetReflection()->GetString(message, FieldOf(message, name));
}

absl::Status Malformed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the server sent a malformed ", what));
}

}  // namespace

// ---- Learning ----

ReflectionClient::ReflectionClient(const std::string& target)
    : ReflectionClient(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())) {}

ReflectionClient::ReflectionClient(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {
  FileDescriptorProto protocol;
  google::protobuf::TextFormat::ParseFromString(kProtocol, &protocol);
  protocol_.BuildFile(protocol);
}

ReflectionClient::~ReflectionClient() = default;

// The bytes of a Response to the Request that has `field` set.
absl::StatusOr<std::string> ReflectionClient::Ask(const std::string& field,
                                                  const std::string& value) {
  const std::unique_ptr<Message> request(
      factory_.GetPrototype(protocol_.FindMessageTypeByName("protocol.Request"))->New());
  request->GetReflection()->SetString(request.get(), FieldOf(*request, field.c_str()), value);
  auto answer = AskVersion(request->SerializeAsString());
  if (absl::IsUnimplemented(answer.status()) && version_ == "v1") {
    version_ = "v1alpha";
    answer = AskVersion(request->SerializeAsString());
  }
  return answer;
}

absl::StatusOr<std::string> ReflectionClient::AskVersion(const std::string& request) {
  GenericCall call(
      stub_, absl::StrCat("/grpc.reflection.", version_, ".ServerReflection/ServerReflectionInfo"));
  call.Write(request);
  call.WritesDone();
  const absl::optional<std::string> answer = call.Read();
  while (call.Read().has_value()) {
  }
  const absl::Status status = call.Finish();
  if (!status.ok()) return status;
  if (!answer.has_value()) return Malformed("stream without an answer");
  return *answer;
}

absl::StatusOr<std::vector<std::string>> ReflectionClient::ListServices() {
  const auto answer = Ask("list_services", "*");
  if (!answer.ok()) return answer.status();
  const std::unique_ptr<Message> response(
      factory_.GetPrototype(protocol_.FindMessageTypeByName("protocol.Response"))->New());
  if (!response->ParseFromString(*answer)) return Malformed("list of services");
  const Message& services = Child(*response, "services");
  const FieldDescriptor* const service = FieldOf(services, "service");
  std::vector<std::string> names;
  for (int i = 0; i < services.GetReflection()->FieldSize(services, service); ++i) {
    names.push_back(
        Text(services.GetReflection()->GetRepeatedMessage(services, service, i), "name"));
  }
  return names;
}

// Fetches files: the one asked for, and those the server thinks it needs.
absl::Status ReflectionClient::Learn(const std::string& field, const std::string& value) {
  const auto answer = Ask(field, value);
  if (!answer.ok()) return answer.status();
  const std::unique_ptr<Message> response(
      factory_.GetPrototype(protocol_.FindMessageTypeByName("protocol.Response"))->New());
  if (!response->ParseFromString(*answer)) return Malformed("file");
  if (Has(*response, "error"))
    return absl::NotFoundError(Text(Child(*response, "error"), "message"));
  const Message& files = Child(*response, "files");
  const FieldDescriptor* const file = FieldOf(files, "file");
  for (int i = 0; i < files.GetReflection()->FieldSize(files, file); ++i) {
    FileDescriptorProto learnt;
    if (!learnt.ParseFromString(files.GetReflection()->GetRepeatedString(files, file, i))) {
      return Malformed("file");
    }
    files_[learnt.name()] = learnt;
  }
  return absl::OkStatus();
}

// Enters a file and, before it, what it imports.
absl::Status ReflectionClient::Build(const std::string& file) {
  if (pool_.FindFileByName(file) != nullptr) return absl::OkStatus();
  if (files_.count(file) == 0) {
    const absl::Status learnt = Learn("file_by_filename", file);
    if (!learnt.ok()) return learnt;
  }
  for (const std::string& import : files_[file].dependency()) {
    const absl::Status built = Build(import);
    if (!built.ok()) return built;
  }
  return pool_.BuildFile(files_[file]) == nullptr ? Malformed(file) : absl::OkStatus();
}

absl::StatusOr<const ServiceDescriptor*> ReflectionClient::Describe(const std::string& service) {
  const ServiceDescriptor* found = pool_.FindServiceByName(service);
  if (found != nullptr) return found;
  const absl::Status learnt = Learn("file_containing_symbol", service);
  if (!learnt.ok()) return learnt;
  const std::map<std::string, FileDescriptorProto> files = files_;
  for (const auto& file : files) {
    const absl::Status built = Build(file.first);
    if (!built.ok()) return built;
  }
  found = pool_.FindServiceByName(service);
  if (found == nullptr) return Malformed(absl::StrCat("description of ", service));
  return found;
}

// ---- Calling ----

absl::StatusOr<ReflectionClient::Stream> ReflectionClient::Open(const std::string& method,
                                                                const std::string& request) {
  const std::pair<std::string, std::string> names = absl::StrSplit(method, '/');
  const auto service = Describe(names.first);
  if (!service.ok()) return service.status();
  const auto* const described = (*service)->FindMethodByName(names.second);
  if (described == nullptr) return absl::NotFoundError(absl::StrCat("no method ", method));
  const std::unique_ptr<Message> message(factory_.GetPrototype(described->input_type())->New());
  const auto parsed = google::protobuf::util::JsonStringToMessage(request, message.get());
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.ToString());
  Stream stream;
  stream.client_ = this;
  stream.answer_ = described->output_type();
  stream.call_ = std::make_unique<GenericCall>(stub_, "/" + method);
  stream.call_->Write(message->SerializeAsString());
  stream.call_->WritesDone();
  return stream;
}

absl::StatusOr<ReflectionClient::Answer> ReflectionClient::Call(const std::string& method,
                                                                const std::string& request) {
  auto stream = Open(method, request);
  if (!stream.ok()) return stream.status();
  const absl::optional<std::string> bytes = stream->call_->Read();
  const absl::Status status = stream->Finish();
  if (!status.ok()) return status;
  if (!bytes.has_value()) return Malformed("call without an answer");
  const auto json = ToJson(*stream->answer_, *bytes);
  if (!json.ok()) return json.status();
  return Answer{*json, bytes->size()};
}

absl::optional<std::string> ReflectionClient::Stream::Next() {
  const absl::optional<std::string> bytes = call_->Read();
  if (!bytes.has_value()) return absl::nullopt;
  return client_->ToJson(*answer_, *bytes).value();
}

absl::StatusOr<std::string> ReflectionClient::ToJson(const Descriptor& type,
                                                     const std::string& bytes) {
  const std::unique_ptr<Message> message(factory_.GetPrototype(&type)->New());
  if (!message->ParseFromString(bytes)) return Malformed(type.full_name());
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(*message, &json, options);
  if (!printed.ok()) return absl::InternalError(printed.ToString());
  return json;
}

}  // namespace sluice

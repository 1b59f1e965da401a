#include "server/rpc/operator/reflection.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
namespace reflection = grpc::reflection::v1;

// One stream, which asks one question after the other.
class ReflectionV1Test : public ::testing::Test {
 protected:
  ReflectionV1Test()
      : world_(Sync(1)),
        stub_(reflection::ServerReflection::NewStub(
            grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials()))),
        context_(world_.Context()),
        stream_(stub_->ServerReflectionInfo(context_.get())) {}

  void TearDown() override {
    stream_->WritesDone();
    reflection::ServerReflectionResponse none;
    EXPECT_FALSE(stream_->Read(&none));
    EXPECT_TRUE(stream_->Finish().ok());
  }

  reflection::ServerReflectionResponse Ask(const reflection::ServerReflectionRequest& request) {
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(stream_->Write(request));
    EXPECT_TRUE(stream_->Read(&response));
    EXPECT_EQ(response.valid_host(), request.host());
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }

  // The names of the files of an answer.
  static std::vector<std::string> FilesIn(const reflection::ServerReflectionResponse& response) {
    std::vector<std::string> names;
    for (const auto& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }

  ServerWorld world_;
  const std::unique_ptr<reflection::ServerReflection::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<reflection::ServerReflectionRequest,
                                                 reflection::ServerReflectionResponse>>
      stream_;
};

TEST_F(ReflectionV1Test, ListsTheServices) {
  reflection::ServerReflectionRequest request;
  request.set_host("here");
  request.set_list_services("");
  std::vector<std::string> names;
  const auto response = Ask(request);
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, UnorderedElementsAre("sluice.v1.ParameterServer", "sluice.v1.Inspector",
                                          "sluice.v1.Admin", "grpc.health.v1.Health",
                                          "grpc.reflection.v1.ServerReflection",
                                          "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_F(ReflectionV1Test, GivesAFileByItsNameOrASymbolInItWithItsImports) {
  reflection::ServerReflectionRequest request;
  request.set_file_by_filename("sluice/v1/admin.proto");
  const auto by_name = FilesIn(Ask(request));
  EXPECT_THAT(by_name, ElementsAre("sluice/v1/admin.proto", "google/protobuf/duration.proto",
                                   "google/protobuf/timestamp.proto", "sluice/v1/training.proto"));
  for (const char* symbol :
       {"sluice.v1.Admin", "sluice.v1.Admin.Drain", "sluice.v1.DrainRequest"}) {
    request.set_file_containing_symbol(symbol);
    EXPECT_EQ(FilesIn(Ask(request)), by_name) << symbol;
  }
}

// In C++ these messages have names of Sluice's own. This test has the projects' messages, too.
TEST_F(ReflectionV1Test, DescribesStandardServicesByTheirStandardNames) {
  const std::pair<const char*, const char*> kSymbols[] = {
      {"grpc.health.v1.Health", "grpc/health/v1/health.proto"},
      {"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"},
      {"grpc.reflection.v1.ServerReflection", "grpc/reflection/v1/reflection.proto"},
      {"grpc.reflection.v1alpha.ServerReflection", "grpc/reflection/v1alpha/reflection.proto"},
      {"google.rpc.ErrorInfo", "google/rpc/error.proto"},
  };
  for (const auto& [symbol, name] : kSymbols) {
    SCOPED_TRACE(symbol);
    reflection::ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    const auto response = Ask(request);
    ASSERT_THAT(FilesIn(response), Contains(name));
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0)));
    EXPECT_EQ(absl::StrReplaceAll(file.package(), {{".", "/"}}),
              std::string(name).substr(0, std::string(name).rfind('/')));
    EXPECT_THAT(file.DebugString(), Not(HasSubstr("sluice")));
  }
}

TEST_F(ReflectionV1Test, IsServedInItsOlderVersionToo) {
  grpc::GenericStub stub(
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials()));
  GenericCall call(stub, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  reflection::ServerReflectionRequest request;  // which has the same bytes
  request.set_file_by_filename("grpc/health/v1/health.proto");
  call.Write(request.SerializeAsString());
  call.WritesDone();
  reflection::ServerReflectionResponse response;
  ASSERT_TRUE(response.ParseFromString(call.Read().value()));
  EXPECT_THAT(FilesIn(response), ElementsAre("grpc/health/v1/health.proto"));
  EXPECT_EQ(call.Read(), absl::nullopt);
  EXPECT_THAT(call.Finish(), IsOk());
}

TEST_F(ReflectionV1Test, SaysWhatItDoesNotKnowAndGoesOn) {
  const auto expect_error = [this](const reflection::ServerReflectionRequest& request, int code,
                                   const std::string& message) {
    const auto error = Ask(request).error_response();
    EXPECT_EQ(error.error_code(), code);
    EXPECT_THAT(error.error_message(), HasSubstr(message));
  };
  reflection::ServerReflectionRequest request;
  expect_error(request, grpc::StatusCode::UNIMPLEMENTED, "asks for nothing");
  request.set_file_by_filename("no.proto");
  expect_error(request, grpc::StatusCode::NOT_FOUND, "no file \"no.proto\"");
  request.set_file_containing_symbol("no.Such\n");
  expect_error(request, grpc::StatusCode::NOT_FOUND, "no symbol \"no.Such\\n\"");
  request.mutable_file_containing_extension()->set_containing_type("no.Type");
  expect_error(request, grpc::StatusCode::NOT_FOUND, "no such extension of \"no.Type\"");
  request.set_all_extension_numbers_of_type("no.Type");
  expect_error(request, grpc::StatusCode::NOT_FOUND, "no message \"no.Type\"");
  request.set_all_extension_numbers_of_type("sluice.v1.ServerState");
  const auto numbers = Ask(request).all_extension_numbers_response();
  EXPECT_EQ(numbers.base_type_name(), "sluice.v1.ServerState");
  EXPECT_EQ(numbers.extension_number_size(), 0);
}

}  // namespace
}  // namespace sluice

// A server that holds a stripe, asked by operators, beside the first server of its job.

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/replica.h"
#include "server/rpc/server.h"
#include "sluice/v1/admin.pb.h"
#include "sluice/v1/inspector.pb.h"
#include "tests/testing/json.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Server 1 of 2, whose first server is at an address.
class Second {
 public:
  explicit Second(const std::string& first, const std::string& token = "",
                  CredentialsSource credentials = nullptr)
      : replica_({1, 2}, SnapshotMemory::kPrivate, std::make_unique<Serial>(), Executors::Inline(),
                 [](const ReplicaReport&) {}) {
    GrpcServerOptions options;
    options.address = *ParseAddress("127.0.0.1:0");
    options.token = token;
    options.credentials = std::move(credentials);
    door_ = *StartStripeServer(options, first, replica_);
  }
  ~Second() { door_->Shutdown(absl::ZeroDuration()); }

  std::string address() const { return door_->address().ToString(); }

 private:
  Replica replica_;
  std::unique_ptr<GrpcServer> door_;
};

// The paths of all methods of Inspector and Admin.
std::vector<std::string> OperatorMethods() {
  std::vector<std::string> methods;
  for (const google::protobuf::ServiceDescriptor* const service :
       {v1::DrainRequest::descriptor()->file()->FindServiceByName("Admin"),
        v1::ServerState::descriptor()->file()->FindServiceByName("Inspector")}) {
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back(absl::StrCat("/", service->full_name(), "/", service->method(i)->name()));
    }
  }
  return methods;
}

TEST(OtherServerTest, NamesTheFirstServerInEachAnswerButThatOfGetRow) {
  const Second second("unix:/first", "secret");
  const auto channel = grpc::CreateChannel(second.address(), grpc::InsecureChannelCredentials());
  int refused = 0;
  for (const std::string& method : OperatorMethods()) {
    const absl::Status status = CallOnce(channel, method);
    if (method == "/sluice.v1.Inspector/GetRow") {
      EXPECT_THAT(status, IsError(Reason::kNotInitialized, _));
      continue;
    }
    EXPECT_THAT(status, IsError(Reason::kNotFirstServer, HasSubstr("call that, at unix:/first")))
        << method;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << method;
    ++refused;
  }
  EXPECT_EQ(refused, 15);
}

TEST(OtherServerTest, HasHealthAndDescribesItsServices) {
  const Second second("unix:/first");
  ReflectionClient client(second.address());
  const auto health = client.Call("grpc.health.v1.Health/Check");
  ASSERT_THAT(health, IsOk());
  EXPECT_EQ(JsonAt(health->json, "status"), "SERVING");
  const auto services = client.ListServices();
  ASSERT_THAT(services, IsOk());
  EXPECT_THAT(*services, IsSupersetOf({"sluice.v1.Inspector", "sluice.v1.Admin",
                                       "sluice.v1.ParameterServer", "grpc.health.v1.Health"}));
}

TEST(OtherServerTest, RefusesByTheRoleFirst) {
  const TestAuthority authority;
  const Second second("unix:/first", "", SourceOf(authority.ServerOfSeveral()));
  const auto status = [&](const Credentials& caller, const std::string& method) {
    return CallOnce(TlsChannel(second.address(), caller), absl::StrCat("/sluice.v1.", method));
  };
  const Credentials observer = authority.Client({Role::kObserver});
  EXPECT_THAT(status(observer, "Inspector/GetServerState"), IsError(Reason::kNotFirstServer, _));
  EXPECT_THAT(status(observer, "Admin/Drain"), IsError(Reason::kWrongRole, _));
  EXPECT_THAT(status(authority.Client({}), "Inspector/GetServerState"),
              IsError(Reason::kWrongRole, HasSubstr("has no role")));
}

}  // namespace
}  // namespace sluice

// A server that holds a stripe, asked by operators, beside the first server of its job.

#include "server/rpc/operator/passing_inspector.h"

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
#include "server/rpc/server.h"
#include "server/shard/held_stripe.h"
#include "sluice/v1/admin.pb.h"
#include "tests/testing/json.h"
#include "tests/testing/outcome.h"
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
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Server 1 of 2, whose first server is at an address.
class Second {
 public:
  explicit Second(const std::string& first, const std::string& token = "",
                  CredentialsSource credentials = nullptr)
      : stripe_({1, 2}, SnapshotMemory::kPrivate, std::make_unique<Serial>(), Executors::Inline(),
                [](const HolderReport&) {}) {
    GrpcServerOptions options;
    options.address = *ParseAddress("127.0.0.1:0");
    options.token = token;
    options.credentials = std::move(credentials);
    door_ = *StartStripeServer(options, first, stripe_);
  }
  ~Second() { Stop(); }

  // Calls may end by themselves for so long.
  void Stop(absl::Duration grace = absl::ZeroDuration()) { door_->Shutdown(grace); }
  std::string address() const { return door_->address().ToString(); }

 private:
  HeldStripe stripe_;
  std::unique_ptr<GrpcServer> door_;
};

class PassingInspectorTest : public ::testing::Test {
 protected:
  PassingInspectorTest() {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {1, 2, 3}), IsOk());
  }

  std::string Asked(ReflectionClient& client, const std::string& method,
                    const std::string& request = "{}") {
    const auto answer = client.Call(absl::StrCat("sluice.v1.Inspector/", method), request);
    EXPECT_THAT(answer, IsOk());
    return answer.ok() ? answer->json : "{}";
  }

  ServerWorld world_{Sync(1)};
  Second second_{world_.address().ToString()};
  ReflectionClient first_client_{world_.address().ToString()};
  ReflectionClient client_{second_.address()};
};

TEST_F(PassingInspectorTest, AnswersWhatTheFirstServerAnswers) {
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(JsonAt(Asked(client_, "GetServerState"), "step"), "1");
  for (const char* method : {"ListWorkers", "ListParameters"}) {
    EXPECT_EQ(Asked(client_, method), Asked(first_client_, method)) << method;
  }
  EXPECT_EQ(JsonAt(Asked(client_, "ListServers"), "servers.0.elements"), "3");
  const std::string name = JsonAt(Asked(client_, "ListParameters"), "parameters.0.name");
  const std::string request = absl::StrCat(R"({"name": ")", name, R"("})");
  EXPECT_EQ(Asked(client_, "GetParameter", request), Asked(first_client_, "GetParameter", request));
}

TEST_F(PassingInspectorTest, PassesErrorsOnWithTheirReasons) {
  EXPECT_THAT(client_.Call("sluice.v1.Inspector/GetParameter", R"({"name": "x"})"),
              IsError(Reason::kNotFound, HasSubstr("no parameter \"x\"")));
  EXPECT_THAT(client_.Call("sluice.v1.Inspector/ListWorkers", R"({"pageToken": "x"})"),
              IsError(Reason::kBadArgument, HasSubstr("page_token")));
}

TEST_F(PassingInspectorTest, RefusesALargeRequest) {
  const std::string request = absl::StrCat(R"({"name": ")", std::string(20000, 'x'), R"("})");
  EXPECT_THAT(client_.Call("sluice.v1.Inspector/GetParameter", request),
              HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("passes on at most 16384")));
}

TEST_F(PassingInspectorTest, PassesEachStateOnUntilTheCallerEnds) {
  auto watch = client_.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "0.1s"})");
  ASSERT_THAT(watch, IsOk());
  const auto step = [&] { return JsonAt(watch->Next().value_or("{}"), "step"); };
  EXPECT_EQ(step(), "0");
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(step(), "1");
  watch->Cancel();
  EXPECT_THAT(watch->Finish(), HasCode(absl::StatusCode::kCancelled, _));
}

TEST_F(PassingInspectorTest, EndsAWatchWithOkWhenItGoesDown) {
  auto watch = client_.Open("sluice.v1.Inspector/WatchState");
  ASSERT_THAT(watch, IsOk());
  EXPECT_TRUE(watch->Next().has_value());
  second_.Stop(kPatience);
  EXPECT_FALSE(watch->Next().has_value());
  EXPECT_THAT(watch->Finish(), IsOk());
}

TEST_F(PassingInspectorTest, PassesABoundedNumberOfWatchesOn) {
  std::vector<ReflectionClient::Stream> watches;
  for (int i = 0; i < 64; ++i) {
    auto watch = client_.Open("sluice.v1.Inspector/WatchState");
    ASSERT_THAT(watch, IsOk());
    watches.push_back(*std::move(watch));
    EXPECT_TRUE(watches.back().Next().has_value());
  }
  auto refused = client_.Open("sluice.v1.Inspector/WatchState");
  ASSERT_THAT(refused, IsOk());
  EXPECT_FALSE(refused->Next().has_value());
  EXPECT_THAT(refused->Finish(),
              HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("passes 64 calls on")));
  EXPECT_EQ(JsonAt(Asked(client_, "GetServerState"), "step"), "0");  // streams take no place of it
}

TEST_F(PassingInspectorTest, SaysThatTheFirstServerCannotBeReached) {
  const std::string first = world_.address().ToString();
  EXPECT_EQ(JsonAt(Asked(client_, "GetServerState"), "step"), "0");
  world_.Stop();
  const auto unreachable = HasCode(
      absl::StatusCode::kUnavailable,
      AllOf(HasSubstr(absl::StrCat("this server cannot reach the first server, at ", first)),
            HasSubstr("call again when it runs")));
  EXPECT_THAT(client_.Call("sluice.v1.Inspector/GetServerState"), unreachable);
  auto watch = client_.Open("sluice.v1.Inspector/WatchState");
  ASSERT_THAT(watch, IsOk());
  EXPECT_FALSE(watch->Next().has_value());
  EXPECT_THAT(watch->Finish(), unreachable);
}

TEST_F(PassingInspectorTest, HasHealthAndDescribesItsServices) {
  const auto health = client_.Call("grpc.health.v1.Health/Check");
  ASSERT_THAT(health, IsOk());
  EXPECT_EQ(JsonAt(health->json, "status"), "SERVING");
  const auto services = client_.ListServices();
  ASSERT_THAT(services, IsOk());
  EXPECT_THAT(*services, IsSupersetOf({"sluice.v1.Inspector", "sluice.v1.Admin",
                                       "sluice.v1.ParameterServer", "grpc.health.v1.Health"}));
}

// The paths of all methods of Admin.
std::vector<std::string> AdminMethods() {
  const google::protobuf::ServiceDescriptor* const admin =
      v1::DrainRequest::descriptor()->file()->FindServiceByName("Admin");
  std::vector<std::string> methods;
  for (int i = 0; i < admin->method_count(); ++i) {
    methods.push_back(absl::StrCat("/sluice.v1.Admin/", admin->method(i)->name()));
  }
  return methods;
}

TEST(RefusingAdminTest, NamesTheFirstServer) {
  const Second second("unix:/first");
  const auto channel = grpc::CreateChannel(second.address(), grpc::InsecureChannelCredentials());
  for (const std::string& method : AdminMethods()) {
    const absl::Status status = CallOnce(channel, method);
    EXPECT_THAT(status, IsError(Reason::kNotFirstServer, HasSubstr("at unix:/first"))) << method;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << method;
  }
}

TEST(RefusingAdminTest, TellsNothingWithoutTheToken) {
  const Second second("unix:/first", "secret");
  const auto channel = grpc::CreateChannel(second.address(), grpc::InsecureChannelCredentials());
  for (const std::string& method : AdminMethods()) {
    EXPECT_THAT(CallOnce(channel, method), IsError(Reason::kBadToken, _)) << method;
  }
}

TEST(PassingInspectorRolesTest, WhoMayReadAtTheFirstServerMayReadAtAnyAndNobodyElse) {
  const TestAuthority authority;
  TlsWorld world(SourceOf(authority.ServerOfSeveral()));
  const Second second(world.address(), "", SourceOf(authority.ServerOfSeveral()));
  for (const char* method :
       {"GetServerState", "ListWorkers", "ListServers", "ListParameters", "GetParameter"}) {
    const std::string path = absl::StrCat("/sluice.v1.Inspector/", method);
    for (const auto& credentials :
         {authority.Client({Role::kWorker}), authority.Client({Role::kObserver}),
          authority.Client({Role::kAdmin}), authority.Client({Role::kServer}),
          authority.Client({})}) {
      const absl::Status at_first = CallOnce(TlsChannel(world.address(), credentials), path);
      const absl::Status at_second = CallOnce(TlsChannel(second.address(), credentials), path);
      EXPECT_EQ(at_first, at_second) << method;
    }
    EXPECT_THAT(CallOnce(TlsChannel(second.address(), authority.Client({})), path),
                HasCode(absl::StatusCode::kPermissionDenied, HasSubstr("has no role")));
  }
}

}  // namespace
}  // namespace sluice

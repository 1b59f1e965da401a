// Mutual TLS at the door: who gets past the handshake, and what their certificates let them do.

#include "server/grpc_tls.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/shared_floats.h"
#include "common/wire_status.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/method_roles.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/connect.h"
#include "tests/testing/generic_call.h"
#include "tests/testing/reflection_client.h"
#include "tests/testing/status.h"
#include "tests/testing/tls_world.h"
#include "worker/grpc_connection.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kState[] = "/sluice.v1.Inspector/GetServerState";

auto IsUnavailable() { return HasCode(absl::StatusCode::kUnavailable, _); }
auto IsDenied(const std::string& why) {
  return HasCode(absl::StatusCode::kPermissionDenied, HasSubstr(why));
}

// Calls a method of any kind and looks at its first answer, or else at how it ended.
absl::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& request = "") {
  grpc::GenericStub stub(channel);
  GenericCall call(stub, method);
  call.Write(request);
  call.WritesDone();
  return call.Read().has_value() ? absl::OkStatus() : call.Finish();
}

std::string Joining(v1::SessionRole role, const std::string& name) {
  v1::JoinRequest request;
  request.set_role(role);
  request.set_worker(name);
  return request.SerializeAsString();
}

std::string Pulling(uint64_t session) {
  v1::PullParamsRequest request;
  request.set_session(session);
  return request.SerializeAsString();
}

class GrpcTlsTest : public ::testing::Test {
 protected:
  std::shared_ptr<grpc::Channel> ChannelOf(const Credentials& credentials) const {
    return TlsChannel(world_.address(), credentials);
  }
  std::shared_ptr<grpc::Channel> ChannelOf(Role role) const {
    return ChannelOf(authority_.Client({role}));
  }

  absl::StatusOr<std::unique_ptr<ServerConnection>> Connect(const Credentials& credentials) const {
    GrpcConnectionOptions options;
    options.address = world_.address();
    options.credentials = SourceOf(credentials);
    return ConnectOverGrpc(options);
  }

  const TestAuthority authority_;
  TlsWorld world_{SourceOf(authority_.Server())};
};

// ---- The handshake ----

TEST_F(GrpcTlsTest, LetsAWorkerIn) {
  const auto connection = Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(connection, IsOk());
  EXPECT_THAT((*connection)->Join(WorkerRequest("a")), IsOk());
}

TEST_F(GrpcTlsTest, EndsAtTheHandshakeForWhoShowsAServersCertificate) {
  EXPECT_THAT(Call(ChannelOf(authority_.Server()), kState), IsUnavailable());
}

TEST_F(GrpcTlsTest, EndsAtTheHandshakeForPlaintext) {
  EXPECT_THAT(
      Call(grpc::CreateChannel(world_.address(), grpc::InsecureChannelCredentials()), kState),
      IsUnavailable());
}

TEST_F(GrpcTlsTest, AWorkerEndsItAtAServerOfAnotherAuthority) {
  Credentials credentials = authority_.Client({Role::kWorker});
  credentials.authority = TestAuthority().Server().authority;
  EXPECT_THAT(Call(ChannelOf(credentials), kState), IsUnavailable());
}

// A worker's certificate is no server's: a worker cannot lure the others to itself.
TEST_F(GrpcTlsTest, AWorkerEndsItAtAServerWithAClientsCertificate) {
  const TlsWorld impostor(SourceOf(authority_.Client({Role::kWorker})));
  EXPECT_THAT(Call(TlsChannel(impostor.address(), authority_.Client({Role::kWorker})), kState),
              IsUnavailable());
}

TEST_F(GrpcTlsTest, TheServersNamesAreThoseOfItsCertificate) {
  const std::string port = world_.address().substr(world_.address().rfind(':'));
  const Credentials worker = authority_.Client({Role::kWorker});
  EXPECT_THAT(Call(TlsChannel("localhost" + port, worker), kState), IsOk());
  EXPECT_THAT(Call(TlsChannel("127.0.0.2" + port, worker), kState), IsUnavailable());
}

TEST_F(GrpcTlsTest, TellsAWorkerThatIsNotLetInWhatToLookAt) {
  GrpcConnectionOptions options;
  options.address = world_.address();
  options.credentials = SourceOf(TestAuthority().Client({Role::kWorker}));
  options.connect_timeout = absl::Milliseconds(100);
  EXPECT_THAT(ConnectOverGrpc(options).status(),
              HasCode(absl::StatusCode::kUnavailable,
                      AllOf(StartsWith("no server at 127.0.0.1:"),
                            HasSubstr("do both sides trust each other's certificates?"))));
}

// ---- Roles ----

// Who may call what: what the README promises. A method that is missing here fails the test.
const std::map<std::string, std::string>& Promised() {
  static const auto* const promised = new std::map<std::string, std::string>{
      {"/sluice.v1.ParameterServer/Join", "worker or observer"},
      {"/sluice.v1.ParameterServer/Heartbeat", "worker or observer"},
      {"/sluice.v1.ParameterServer/InitializeParams", "worker"},
      {"/sluice.v1.ParameterServer/PushGradients", "worker"},
      {"/sluice.v1.ParameterServer/PullParams", "worker or observer"},
      {"/sluice.v1.ParameterServer/Leave", "worker or observer"},
      {"/sluice.v1.Inspector/GetServerState", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListWorkers", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListParameters", "worker or observer or admin"},
      {"/sluice.v1.Inspector/GetParameter", "worker or observer or admin"},
      {"/sluice.v1.Inspector/WatchState", "worker or observer or admin"},
      {"/sluice.v1.Admin/SetPolicy", "admin"},
      {"/sluice.v1.Admin/SetLearningRate", "admin"},
      {"/sluice.v1.Admin/EvictWorker", "admin"},
      {"/sluice.v1.Admin/Drain", "admin"},
      {"/grpc.health.v1.Health/Check", "worker or observer or admin"},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
       "worker or observer or admin"},
  };
  return *promised;
}

// Every method that the server has registered, as it tells by reflection itself.
std::vector<std::string> RegisteredMethods(const std::shared_ptr<grpc::Channel>& channel) {
  ReflectionClient client(channel);
  std::vector<std::string> methods;
  const auto services = client.ListServices();
  EXPECT_THAT(services, IsOk());
  for (const std::string& service : services.value_or(std::vector<std::string>())) {
    const auto described = client.Describe(service);
    EXPECT_THAT(described, IsOk());
    for (int i = 0; described.ok() && i < (*described)->method_count(); ++i) {
      methods.push_back(absl::StrCat("/", service, "/", (*described)->method(i)->name()));
    }
  }
  return methods;
}

TEST_F(GrpcTlsTest, EveryRegisteredMethodIsInTheTableOfRoles) {
  std::map<std::string, std::string> table;
  for (const std::string& method : RegisteredMethods(ChannelOf(Role::kObserver))) {
    table[method] = RolesThatMayCall(method).ToString();
  }
  EXPECT_EQ(table, Promised());
}

TEST_F(GrpcTlsTest, EachRoleMayCallWhatItIsPromisedAndNothingElse) {
  const std::string joining = Joining(v1::OBSERVER, "o");
  for (const Role role : {Role::kObserver, Role::kWorker, Role::kAdmin}) {  // who drains comes last
    const auto channel = ChannelOf(role);
    for (const auto& entry : Promised()) {
      const bool joins = entry.first == "/sluice.v1.ParameterServer/Join";
      const absl::Status status = Call(channel, entry.first, joins ? joining : "");
      const bool promised = absl::StrContains(entry.second, Roles(role).ToString());
      EXPECT_NE(absl::IsPermissionDenied(status), promised)
          << Roles(role).ToString() << " calls " << entry.first << ": " << status;
      EXPECT_FALSE(absl::IsUnavailable(status) && role != Role::kAdmin) << status;
    }
  }
}

TEST_F(GrpcTlsTest, NoMethodIsReachedWithoutAGoodCertificate) {
  const TestAuthority other;
  Credentials none = authority_.Client({});
  none.certificate.clear();
  none.key.clear();
  Credentials foreign = other.Client({Role::kAdmin});
  foreign.authority = none.authority;  // it would trust the server
  const Credentials expired = authority_.ExpiredClient({Role::kAdmin});
  for (const Credentials& credentials : {none, foreign, expired}) {
    for (const auto& entry : Promised()) {
      EXPECT_THAT(Call(ChannelOf(credentials), entry.first), IsUnavailable()) << entry.first;
    }
  }
}

TEST_F(GrpcTlsTest, TellsWhichRoleAMethodTakes) {
  EXPECT_THAT(Call(ChannelOf(Role::kWorker), "/sluice.v1.Admin/Drain"),
              IsDenied("the caller's certificate has the role worker; /sluice.v1.Admin/Drain takes "
                       "the role admin"));
}

TEST_F(GrpcTlsTest, RefusesEveryMethodToACertificateWithoutARole) {
  const auto channel = ChannelOf(authority_.Client({}));
  for (const auto& entry : Promised()) {
    EXPECT_THAT(Call(channel, entry.first),
                IsDenied("has no role among its alternative names, such as the URI sluice:worker"));
  }
}

TEST_F(GrpcTlsTest, ACertificateMayHaveSeveralRoles) {
  const auto channel = ChannelOf(authority_.Client({Role::kWorker, Role::kAdmin}));
  EXPECT_THAT(Call(channel, "/sluice.v1.ParameterServer/Heartbeat"),
              HasCode(absl::StatusCode::kAborted, _));
  EXPECT_THAT(Call(channel, "/sluice.v1.Admin/Drain"), IsOk());
}

TEST_F(GrpcTlsTest, RefusesAMethodThatTheServerDoesNotHave) {
  EXPECT_THAT(Call(ChannelOf(Role::kAdmin), "/sluice.v1.Admin/Explode"),
              IsDenied("no role may call /sluice.v1.Admin/Explode"));
}

// ---- Observers ----

constexpr char kJoin[] = "/sluice.v1.ParameterServer/Join";
constexpr char kPull[] = "/sluice.v1.ParameterServer/PullParams";

TEST_F(GrpcTlsTest, AnObserverCannotJoinAsAWorkerNorInItsName) {
  const auto worker = Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(worker, IsOk());
  ASSERT_THAT((*worker)->Join(WorkerRequest("a")), IsOk());
  const auto channel = ChannelOf(Role::kObserver);
  EXPECT_THAT(Call(channel, kJoin, Joining(v1::WORKER, "o")),
              IsError(Reason::kWrongRole, HasSubstr("it may join as an observer only")));
  EXPECT_THAT(Call(channel, kJoin, Joining(v1::OBSERVER, "a")),
              IsError(Reason::kWrongRole, HasSubstr("a is a worker's name")));
}

TEST_F(GrpcTlsTest, AnObserverCannotUseAWorkersSession) {
  const auto worker = Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(worker, IsOk());
  const auto welcome = (*worker)->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  // All three requests have the session as their first field.
  const std::string session = Pulling(welcome->session.value());
  const auto channel = ChannelOf(Role::kObserver);
  for (const char* method : {"Heartbeat", "PullParams", "Leave"}) {
    EXPECT_THAT(Call(channel, absl::StrCat("/sluice.v1.ParameterServer/", method), session),
                IsError(Reason::kWrongRole, HasSubstr("is a worker's")));
  }
  EXPECT_THAT((*worker)->Leave(welcome->session, {}), IsOk());
}

TEST_F(GrpcTlsTest, AnObserverPullsWithItsOwnSession) {
  const auto worker = Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(worker, IsOk());
  const auto trains = (*worker)->Join(WorkerRequest("a"));
  ASSERT_THAT(trains, IsOk());
  ASSERT_THAT((*worker)->Initialize(trains->session, Share({1, 2, 3})), IsOk());
  const auto observer = Connect(authority_.Client({Role::kObserver}));
  ASSERT_THAT(observer, IsOk());
  const auto looks = (*observer)->Join(ObserverRequest("o"));
  ASSERT_THAT(looks, IsOk());
  EXPECT_THAT(Call(ChannelOf(Role::kObserver), kPull, Pulling(looks->session.value())), IsOk());
}

// ---- Renewal ----

class RenewalTest : public ::testing::Test {
 protected:
  ~RenewalTest() override { std::filesystem::remove_all(folder_); }

  absl::Status CallWith(const Credentials& credentials) const {
    return Call(TlsChannel(world_.address(), credentials), kState);
  }

  const std::string folder_ = ::testing::TempDir() + "/renewal";
  const TestAuthority authority_;
  const TlsFiles files_ = WriteCredentials(authority_.Server(), folder_);
  TlsWorld world_{SourceOf(files_)};
};

TEST_F(RenewalTest, ANewAuthorityIsTrustedFromTheNextConnectionOn) {
  const TestAuthority next;
  const auto open = TlsChannel(world_.address(), authority_.Client({Role::kWorker}));
  EXPECT_THAT(Call(open, kState), IsOk());
  WriteCredentials(next.Server(), folder_);
  EXPECT_THAT(CallWith(next.Client({Role::kWorker})), IsOk());
  EXPECT_THAT(CallWith(authority_.Client({Role::kWorker})), IsUnavailable());
  EXPECT_THAT(Call(open, kState), IsOk());  // it lasts as long as its connection
}

TEST_F(RenewalTest, FilesThatAreNotReadyChangeNothing) {
  const Credentials worker = authority_.Client({Role::kWorker});
  std::filesystem::remove(files_.key);
  EXPECT_THAT(CallWith(worker), IsOk());
  Credentials half = authority_.Server();
  half.key = authority_.Server().key;
  WriteCredentials(half, folder_);
  EXPECT_THAT(CallWith(worker), IsOk());
}

TEST_F(RenewalTest, CertificatesAreReplacedUnderLoadWithoutAFailedCall) {
  const Credentials worker = authority_.Client({Role::kWorker});
  std::atomic<bool> done{false};
  std::atomic<int> failed{0}, calls{0}, connections{0};
  const auto count = [&](const absl::Status& status, std::atomic<int>& kind) {
    if (!status.ok()) ++failed;
    ++kind;
  };
  std::thread on_one_connection([&] {
    const auto channel = TlsChannel(world_.address(), worker);
    while (!done) count(Call(channel, kState), calls);
  });
  std::thread on_new_connections([&] {
    while (!done) count(CallWith(worker), connections);
  });
  for (int i = 0; i < 50; ++i) {
    const int before = connections;
    WriteCredentials(authority_.Server(), folder_);
    while (connections < before + 2) std::this_thread::yield();
  }
  done = true;
  on_one_connection.join();
  on_new_connections.join();
  EXPECT_EQ(failed, 0) << "of " << calls << " calls and " << connections << " connections";
  EXPECT_GE(connections, 100);
}

}  // namespace
}  // namespace sluice

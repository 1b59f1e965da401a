// Which role may call what, at a server that speaks TLS: every method that it has registered, for
// certificates of every kind.

#include "server/rpc/access/method_roles.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/shared_floats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

auto IsUnavailable() { return HasCode(absl::StatusCode::kUnavailable, _); }
auto IsDenied(const std::string& why) {
  return HasCode(absl::StatusCode::kPermissionDenied, HasSubstr(why));
}

// Who may call what: what the README promises. A method that is missing here fails the test.
const std::map<std::string, std::string>& Promised() {
  static const auto* const promised = new std::map<std::string, std::string>{
      {"/sluice.v1.ParameterServer/Join", "worker or observer"},
      {"/sluice.v1.ParameterServer/JoinInParts", "worker or observer"},
      {"/sluice.v1.ParameterServer/Heartbeat", "worker or observer"},
      {"/sluice.v1.ParameterServer/InitializeParams", "worker"},
      {"/sluice.v1.ParameterServer/OfferConstants", "worker"},
      {"/sluice.v1.ParameterServer/PullConstants", "worker or observer"},
      {"/sluice.v1.ParameterServer/PullState", "worker"},
      {"/sluice.v1.ParameterServer/OfferState", "worker"},
      {"/sluice.v1.ParameterServer/PushGradients", "worker"},
      {"/sluice.v1.ParameterServer/PullParams", "worker or observer"},
      {"/sluice.v1.ParameterServer/PushPull", "worker"},
      {"/sluice.v1.ParameterServer/PullRows", "worker or observer"},
      {"/sluice.v1.ParameterServer/PushLane", "worker"},
      {"/sluice.v1.ParameterServer/PullLane", "worker"},
      {"/sluice.v1.ParameterServer/Leave", "worker or observer"},
      {"/sluice.v1.ParameterServer/HoldJob", "worker"},
      {"/sluice.v1.ParameterServer/PullSlots", "worker"},
      {"/sluice.v1.ParameterServer/AllGather", "worker"},
      {"/sluice.v1.Inspector/GetServerState", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListWorkers", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListServers", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListParameters", "worker or observer or admin"},
      {"/sluice.v1.Inspector/GetParameter", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListTables", "worker or observer or admin"},
      {"/sluice.v1.Inspector/GetRow", "worker or observer or admin"},
      {"/sluice.v1.Inspector/WatchState", "worker or observer or admin"},
      {"/sluice.v1.Inspector/ListModels", "worker or observer or admin"},
      {"/sluice.v1.Admin/SetPolicy", "admin"},
      {"/sluice.v1.Admin/SetLearningRate", "admin"},
      {"/sluice.v1.Admin/EvictWorker", "admin"},
      {"/sluice.v1.Admin/Drain", "admin"},
      {"/sluice.v1.Admin/SaveCheckpoint", "admin"},
      {"/sluice.v1.Admin/ReadLogs", "admin"},
      {"/sluice.v1.Admin/CollectTrace", "admin"},
      {"/grpc.health.v1.Health/Check", "worker or observer or admin"},
      {"/grpc.health.v1.Health/Watch", "worker or observer or admin"},
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "worker or observer or admin"},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
       "worker or observer or admin"},
  };
  return *promised;
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

class MethodRolesTest : public ::testing::Test {
 protected:
  std::shared_ptr<grpc::Channel> ChannelOf(const Credentials& credentials) const {
    return TlsChannel(world_.address(), credentials);
  }
  std::shared_ptr<grpc::Channel> ChannelOf(Role role) const {
    return ChannelOf(authority_.Client({role}));
  }

  const TestAuthority authority_;
  TlsWorld world_{SourceOf(authority_.Server())};
};

// ---- The matrix ----

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

TEST_F(MethodRolesTest, EveryRegisteredMethodIsInTheTableOfRoles) {
  std::map<std::string, std::string> table;
  for (const std::string& method : RegisteredMethods(ChannelOf(Role::kObserver))) {
    table[method] = RolesThatMayCall(method).ToString();
  }
  EXPECT_EQ(table, Promised());
}

TEST_F(MethodRolesTest, EachRoleMayCallWhatItIsPromisedAndNothingElse) {
  const std::string joining = Joining(v1::OBSERVER, "o");
  for (const Role role : {Role::kObserver, Role::kWorker, Role::kAdmin}) {  // who drains comes last
    const auto channel = ChannelOf(role);
    for (const auto& entry : Promised()) {
      const bool joins = absl::StartsWith(entry.first, "/sluice.v1.ParameterServer/Join");
      const absl::Status status = CallOnce(channel, entry.first, joins ? joining : "");
      const bool promised = absl::StrContains(entry.second, Roles(role).ToString());
      EXPECT_NE(absl::IsPermissionDenied(status), promised)
          << Roles(role).ToString() << " calls " << entry.first << ": " << status;
      EXPECT_FALSE(absl::IsUnavailable(status) && role != Role::kAdmin) << status;
    }
  }
}

TEST_F(MethodRolesTest, NoMethodIsReachedWithoutAGoodCertificate) {
  const TestAuthority other;
  Credentials none = authority_.Client({});
  none.certificate.clear();
  none.key.clear();
  Credentials foreign = other.Client({Role::kAdmin});
  foreign.authority = none.authority;  // it would trust the server
  const Credentials expired = authority_.ExpiredClient({Role::kAdmin});
  for (const Credentials& credentials : {none, foreign, expired}) {
    for (const auto& entry : Promised()) {
      EXPECT_THAT(CallOnce(ChannelOf(credentials), entry.first), IsUnavailable()) << entry.first;
    }
  }
}

TEST_F(MethodRolesTest, TellsWhichRoleAMethodTakes) {
  EXPECT_THAT(CallOnce(ChannelOf(Role::kWorker), "/sluice.v1.Admin/Drain"),
              IsDenied("the caller's certificate has the role worker; /sluice.v1.Admin/Drain needs "
                       "the role admin"));
}

TEST_F(MethodRolesTest, RefusesEveryMethodToACertificateWithoutARole) {
  const auto channel = ChannelOf(authority_.Client({}));
  for (const auto& entry : Promised()) {
    EXPECT_THAT(CallOnce(channel, entry.first),
                IsDenied("has no role among its alternative names, such as the URI sluice:worker"));
  }
}

TEST_F(MethodRolesTest, ACertificateMayHaveSeveralRoles) {
  const auto channel = ChannelOf(authority_.Client({Role::kWorker, Role::kAdmin}));
  EXPECT_THAT(CallOnce(channel, "/sluice.v1.ParameterServer/Heartbeat"),
              HasCode(absl::StatusCode::kAborted, _));
  EXPECT_THAT(CallOnce(channel, "/sluice.v1.Admin/Drain"), IsOk());
}

// Clients try a newer method first, and fall back only after this status.
TEST_F(MethodRolesTest, AMethodThatTheServerDoesNotHaveIsUnimplemented) {
  for (const auto& credentials : {authority_.Client({Role::kAdmin}), authority_.Client({})}) {
    EXPECT_THAT(CallOnce(ChannelOf(credentials), "/sluice.v1.Admin/Explode"),
                HasCode(absl::StatusCode::kUnimplemented,
                        HasSubstr("the server has no method /sluice.v1.Admin/Explode")));
  }
}

// Otherwise it could make the server hold its request.
TEST_F(MethodRolesTest, RefusesACallBeforeItsRequestArrives) {
  grpc::GenericStub stub(ChannelOf(authority_.Client({})));
  for (const auto& entry : Promised()) {
    GenericCall call(stub, entry.first);
    EXPECT_FALSE(call.Read().has_value());
    EXPECT_THAT(call.Finish(), IsDenied("has no role"));
  }
}

// Only a job with several servers has the Sequencer.
TEST_F(MethodRolesTest, OfAServiceThatTheServerLacksTheRolesAreCheckedToo) {
  constexpr char kFollow[] = "/sluice.v1.Sequencer/Follow";
  EXPECT_THAT(CallOnce(ChannelOf(Role::kWorker), kFollow), IsDenied("needs the role server"));
  EXPECT_THAT(CallOnce(ChannelOf(Role::kServer), kFollow),
              HasCode(absl::StatusCode::kUnimplemented,
                      HasSubstr("the server has no method /sluice.v1.Sequencer/Follow")));
}

TEST_F(MethodRolesTest, ACallThatEndsWithoutItsRequestIsTold) {
  grpc::GenericStub stub(ChannelOf(Role::kWorker));
  for (const char* method : {"/sluice.v1.Inspector/GetServerState", "/grpc.health.v1.Health/Watch",
                             "/sluice.v1.ParameterServer/Heartbeat"}) {
    GenericCall call(stub, method);
    call.WritesDone();
    EXPECT_FALSE(call.Read().has_value());
    EXPECT_THAT(call.Finish(), IsError(Reason::kBadArgument, HasSubstr("without a request")));
  }
}

// ---- Observers ----

constexpr char kJoin[] = "/sluice.v1.ParameterServer/Join";

TEST_F(MethodRolesTest, AnObserverCannotJoinAsAWorkerNorInItsName) {
  const auto worker = world_.Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(worker, IsOk());
  ASSERT_THAT((*worker)->Join(WorkerRequest("a")), IsOk());
  const auto channel = ChannelOf(Role::kObserver);
  EXPECT_THAT(CallOnce(channel, kJoin, Joining(v1::WORKER, "o")),
              IsError(Reason::kWrongRole, HasSubstr("it may join as an observer only")));
  EXPECT_THAT(CallOnce(channel, kJoin, Joining(v1::OBSERVER, "a")),
              IsError(Reason::kWrongRole, HasSubstr("a is a worker's name")));
}

TEST_F(MethodRolesTest, AnObserverCannotUseAWorkersSession) {
  const auto worker = world_.Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(worker, IsOk());
  const auto welcome = (*worker)->Join(WorkerRequest("a"));
  ASSERT_THAT(welcome, IsOk());
  // All three requests have the session as their first field.
  const std::string session = Pulling(welcome->session.value());
  const auto channel = ChannelOf(Role::kObserver);
  for (const char* method : {"Heartbeat", "PullParams", "Leave"}) {
    EXPECT_THAT(CallOnce(channel, absl::StrCat("/sluice.v1.ParameterServer/", method), session),
                IsError(Reason::kWrongRole, HasSubstr("is a worker's")));
  }
  EXPECT_THAT((*worker)->Leave(welcome->session, {}), IsOk());
}

}  // namespace
}  // namespace sluice

// What observers that mean harm can take from a server that speaks TLS: a bounded part, and nothing
// that its workers need.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/encoding.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/access/rpc_limits.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kJoin[] = "/sluice.v1.ParameterServer/Join";
constexpr char kPull[] = "/sluice.v1.ParameterServer/PullParams";

// A worker "a" has given three parameters.
class HostileObserversTest : public ::testing::Test {
 protected:
  HostileObserversTest() : worker_(Connect(Role::kWorker)) {
    const auto welcome = worker_->Join(WorkerRequest("a"));
    EXPECT_THAT(welcome, IsOk());
    session_ = welcome->session;
    EXPECT_THAT(worker_->Initialize(session_, std::vector<float>{1, 2, 3}), IsOk());
  }

  std::unique_ptr<ServerConnection> Connect(Role role) const {
    auto connection = world_.Connect(authority_.Client({role}));
    EXPECT_THAT(connection, IsOk());
    return *std::move(connection);
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return TlsChannel(world_.address(), authority_.Client({Role::kObserver}));
  }

  // The session that a process has joined through `channel`. It lasts as long as the test.
  uint64_t Observe(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                   uint64_t nonce = 7) {
    JoinRequest request = ObserverRequest(name);
    request.process_nonce = ProcessNonce(nonce);
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    joins_.push_back(std::make_unique<GenericCall>(*stubs_.back(), kJoin));
    EXPECT_TRUE(joins_.back()->Write(ToProto(request).SerializeAsString()));
    joins_.back()->WritesDone();
    v1::JoinEvent event;
    EXPECT_TRUE(event.ParseFromString(joins_.back()->Read().value_or("")));
    return event.welcome().session();
  }

  // Joins that end at once.
  absl::Status Joins(const std::string& name, uint64_t nonce) const {
    JoinRequest request = ObserverRequest(name);
    request.process_nonce = ProcessNonce(nonce);
    return CallOnce(Channel(), kJoin, ToProto(request).SerializeAsString());
  }

  absl::Status WorkerPulls() {
    PullRequest request;
    request.session = session_;
    std::vector<float> parameters(3);
    return worker_->StartPull(request)->Read(absl::MakeSpan(parameters)).status();
  }

  const TestAuthority authority_;
  TlsWorld world_{SourceOf(authority_.Server())};
  std::unique_ptr<ServerConnection> worker_;
  SessionId session_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<GenericCall>> joins_;
};

v1::PullParamsRequest PullOf(uint64_t session) {
  v1::PullParamsRequest request;
  request.set_session(session);
  return request;
}

TEST_F(HostileObserversTest, CannotTakeThePlacesOfWorkers) {
  for (int i = 0; i < RpcLimits::kObservers; ++i) Observe(Channel(), absl::StrCat("o", i));
  EXPECT_THAT(Connect(Role::kObserver)->Join(ObserverRequest("one more")),
              IsError(Reason::kTooManyWorkers, HasSubstr("16 observers")));
  EXPECT_THAT(Connect(Role::kWorker)->Join(WorkerRequest("b")), IsOk());
  // One that joins anew takes no further place.
  EXPECT_THAT(Connect(Role::kObserver)->Join(ObserverRequest("o0")), IsOk());
}

TEST_F(HostileObserversTest, CannotKeepAllStepsInMemoryByPullsThatAreNotRead) {
  const auto channel = Channel();
  v1::PullParamsRequest request = PullOf(Observe(channel, "o"));
  request.set_min_step(100);
  grpc::GenericStub stub(channel);
  std::vector<std::unique_ptr<GenericCall>> pulls;
  for (int i = 0; i < static_cast<int>(PullLimits::kMostOfObserver); ++i) {
    pulls.push_back(std::make_unique<GenericCall>(stub, kPull));
    ASSERT_TRUE(pulls.back()->Write(request.SerializeAsString()));
  }
  while (world_.shard().Describe().waiting_pulls < pulls.size()) std::this_thread::yield();
  EXPECT_THAT(CallOnce(channel, kPull, request.SerializeAsString()),
              IsError(Reason::kTooManyPulls, HasSubstr("read those first")));
  EXPECT_THAT(WorkerPulls(), IsOk());
  for (const auto& pull : pulls) pull->Cancel();
  while (world_.shard().Describe().waiting_pulls > 0) std::this_thread::yield();
}

TEST_F(HostileObserversTest, CannotHoldUpWorkersThatJoinInParts) {
  constexpr char kJoinInParts[] = "/sluice.v1.ParameterServer/JoinInParts";
  v1::JoinRequest half = ToProto(ObserverRequest("o"));
  half.set_more(true);
  const auto channel = Channel();
  grpc::GenericStub stub(channel);
  std::vector<std::unique_ptr<GenericCall>> joins;
  for (int i = 0; i < 8; ++i) {
    joins.push_back(std::make_unique<GenericCall>(stub, kJoinInParts));
    joins.back()->Write(half.SerializeAsString());  // false if the server has refused it already
  }
  grpc::GenericStub worker(TlsChannel(world_.address(), authority_.Client({Role::kWorker})));
  GenericCall join(worker, kJoinInParts);
  ASSERT_TRUE(join.Write(ToProto(WorkerRequest("b")).SerializeAsString()));
  v1::JoinEvent event;
  EXPECT_TRUE(event.ParseFromString(join.Read().value_or("")));
  EXPECT_TRUE(event.has_welcome());
  for (const auto& held : joins) held->Cancel();
}

TEST_F(HostileObserversTest, CannotJoinInPartsAsAWorker) {
  EXPECT_THAT(CallOnce(Channel(), "/sluice.v1.ParameterServer/JoinInParts",
                       ToProto(WorkerRequest("b")).SerializeAsString()),
              IsError(Reason::kWrongRole, HasSubstr("it may join as an observer only")));
}

TEST_F(HostileObserversTest, CannotReportResults) {
  const auto channel = Channel();
  v1::LeaveRequest request;
  request.set_session(Observe(channel, "o"));
  (*request.mutable_results())["test accuracy"] = 1;
  EXPECT_THAT(CallOnce(channel, "/sluice.v1.ParameterServer/Leave", request.SerializeAsString()),
              IsError(Reason::kWrongRole, HasSubstr("it may not report results")));
  EXPECT_TRUE(world_.shard().results().empty());
}

TEST_F(HostileObserversTest, CannotReportWhatTheyMeasured) {
  const auto channel = Channel();
  v1::HeartbeatRequest request;
  request.set_session(Observe(channel, "o"));
  (*request.mutable_measurement()->mutable_results())["test accuracy"] = 1;
  EXPECT_THAT(
      CallOnce(channel, "/sluice.v1.ParameterServer/Heartbeat", request.SerializeAsString()),
      IsError(Reason::kWrongRole, HasSubstr("it may not report results")));
  EXPECT_EQ(world_.shard().Describe().measured.count, 0u);
}

TEST_F(HostileObserversTest, CannotUseUpTheEncodings) {
  const auto channel = Channel();
  v1::PullParamsRequest request = PullOf(Observe(channel, "o"));
  EXPECT_THAT(CallOnce(channel, kPull, request.SerializeAsString()), IsOk());
  *request.mutable_encoding() = ToProto(*ParseEncoding("bfloat16"));
  EXPECT_THAT(CallOnce(channel, kPull, request.SerializeAsString()),
              IsError(Reason::kWrongRole, HasSubstr("may not choose an encoding")));
}

// All requests have the session as their first field.
TEST_F(HostileObserversTest, CannotUseOrEndTheSessionOfAnother) {
  const auto owner = Channel();
  const std::string session = PullOf(Observe(owner, "o")).SerializeAsString();
  const auto other = Channel();
  Observe(other, "p");
  for (const char* method : {"Heartbeat", "PullParams", "Leave"}) {
    const std::string path = absl::StrCat("/sluice.v1.ParameterServer/", method);
    EXPECT_THAT(CallOnce(other, path, session),
                IsError(Reason::kUnknownSession, HasSubstr("joined on this connection")));
    EXPECT_THAT(CallOnce(owner, path, session), IsOk());
  }
}

TEST_F(HostileObserversTest, CannotEndTheSessionOfAnotherByItsName) {
  Observe(Channel(), "o", 7);
  EXPECT_THAT(Joins("o", 8), IsError(Reason::kWrongRole, HasSubstr("o is the name of another")));
  EXPECT_EQ(world_.shard().Describe().observers, 1u);
  // The process itself may return on another connection.
  EXPECT_NE(Observe(Channel(), "o", 7), 0u);
}

}  // namespace
}  // namespace sluice

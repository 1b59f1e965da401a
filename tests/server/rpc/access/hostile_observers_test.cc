// What observers that mean harm can take from a server that speaks TLS: a bounded part, and nothing
// that its workers need.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/encoding.h"
#include "common/wire/encoding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/access/observer_pulls.h"
#include "server/rpc/access/rpc_limits.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kPull[] = "/sluice.v1.ParameterServer/PullParams";

// A worker "a" has given three parameters.
class HostileObserversTest : public ::testing::Test {
 protected:
  HostileObserversTest() : worker_(Connect(Role::kWorker)) {
    const auto welcome = worker_->Join(WorkerRequest("a"));
    EXPECT_THAT(welcome, IsOk());
    session_ = welcome->session;
    EXPECT_THAT(worker_->Initialize(session_, Share({1, 2, 3})), IsOk());
  }

  std::unique_ptr<ServerConnection> Connect(Role role) const {
    auto connection = world_.Connect(authority_.Client({role}));
    EXPECT_THAT(connection, IsOk());
    return *std::move(connection);
  }

  // The bytes of a pull in an observer's new session, which lasts as long as the test.
  v1::PullParamsRequest PullOf(const std::string& observer) {
    observers_.push_back(Connect(Role::kObserver));
    const auto welcome = observers_.back()->Join(ObserverRequest(observer));
    EXPECT_THAT(welcome, IsOk());
    v1::PullParamsRequest request;
    request.set_session(welcome->session.value());
    return request;
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
  std::vector<std::unique_ptr<ServerConnection>> observers_;
};

TEST_F(HostileObserversTest, CannotTakeThePlacesOfWorkers) {
  for (int i = 0; i < RpcLimits::kObservers; ++i) PullOf(absl::StrCat("o", i));
  EXPECT_THAT(Connect(Role::kObserver)->Join(ObserverRequest("one more")),
              IsError(Reason::kTooManyWorkers, HasSubstr("16 observers")));
  EXPECT_THAT(Connect(Role::kWorker)->Join(WorkerRequest("b")), IsOk());
  // One that joins anew takes no further place.
  EXPECT_THAT(Connect(Role::kObserver)->Join(ObserverRequest("o0")), IsOk());
}

TEST_F(HostileObserversTest, CannotKeepAllStepsInMemoryByPullsThatAreNotRead) {
  v1::PullParamsRequest request = PullOf("o");
  request.set_min_step(100);
  const auto channel = TlsChannel(world_.address(), authority_.Client({Role::kObserver}));
  grpc::GenericStub stub(channel);
  std::vector<std::unique_ptr<GenericCall>> pulls;
  for (int i = 0; i < ObserverPulls::kMost; ++i) {
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

TEST_F(HostileObserversTest, CannotUseUpTheEncodings) {
  v1::PullParamsRequest request = PullOf("o");
  const auto channel = TlsChannel(world_.address(), authority_.Client({Role::kObserver}));
  EXPECT_THAT(CallOnce(channel, kPull, request.SerializeAsString()), IsOk());
  *request.mutable_encoding() = ToProto(*ParseEncoding("bfloat16"));
  EXPECT_THAT(CallOnce(channel, kPull, request.SerializeAsString()),
              IsError(Reason::kWrongRole, HasSubstr("with no encoding")));
}

}  // namespace
}  // namespace sluice

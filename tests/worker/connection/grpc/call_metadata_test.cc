// Every call of a connection says whose it is: the token of its job, and the model.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/shared_floats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

// Refuses all calls, and notes what their metadata say.
class NotingServer final : public grpc::CallbackGenericService {
 public:
  NotingServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~NotingServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // Token and model of each method that was called, with / between.
  std::map<std::string, std::string> noted() const {
    absl::MutexLock lock(&mu_);
    return noted_;
  }

 private:
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    Refusal() { Finish({grpc::StatusCode::FAILED_PRECONDITION, "refused"}); }
    void OnDone() override { delete this; }
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    std::vector<std::string> values;
    for (const char* key : {"authorization", "sluice-model"}) {
      for (auto [at, end] = context->client_metadata().equal_range(key); at != end; ++at) {
        values.emplace_back(at->second.data(), at->second.size());
      }
    }
    {
      absl::MutexLock lock(&mu_);
      noted_[context->method()] = absl::StrJoin(values, "/");
    }
    return new Refusal;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mu_;
  std::map<std::string, std::string> noted_ ABSL_GUARDED_BY(mu_);
};

// Makes each call of a connection that no other call must come before.
std::map<std::string, std::string> CallsWith(const std::string& token, const std::string& model) {
  NotingServer server;
  GrpcConnectionOptions options;
  options.address = server.address();
  options.token = token;
  options.model = model;
  const auto connection = ConnectOverGrpc(options);
  EXPECT_TRUE(connection.ok()) << connection.status();
  ServerConnection& calls = **connection;
  const SessionId session(1);
  std::vector<float> vector = {1, 2, 3};
  PushHeader header;
  header.session = session;
  PullRequest pull;
  pull.session = session;
  EXPECT_FALSE(calls.Join(WorkerRequest("a")).ok());
  EXPECT_FALSE(calls.Initialize(session, vector).ok());
  EXPECT_FALSE(calls.OfferConstants(session, 0, {}).ok());
  EXPECT_FALSE(calls.PullConstants(session, 1).ok());
  EXPECT_FALSE(calls.PullState(session, 0).ok());
  EXPECT_FALSE(calls.OfferState(session, std::string("model")).ok());
  const auto push = calls.StartPush(header, 0, BatchIs::kInHeader);
  EXPECT_FALSE(push->Finish({}).ok());
  EXPECT_FALSE(calls.StartPull(pull)->Read(StripeSpan<float>(absl::MakeSpan(vector))).ok());
  EXPECT_FALSE(calls.StartRowPull(pull, {})->Read(StripeSpan<float>(absl::Span<float>())).ok());
  EXPECT_FALSE(calls.Report(session, {}).ok());
  EXPECT_FALSE(calls.Leave(session, {}).ok());
  return server.noted();
}

TEST(CallMetadataTest, EveryCallHasTheTokenAndTheModel) {
  const auto calls = CallsWith("secret", "critic");
  EXPECT_THAT(calls, SizeIs(11));
  EXPECT_THAT(calls, Each(Pair(testing::_, "Bearer secret/critic")));
}

TEST(CallMetadataTest, WithoutTokenAndNameThereIsNone) {
  EXPECT_THAT(CallsWith("", ""), Each(Pair(testing::_, "")));
}

}  // namespace
}  // namespace sluice

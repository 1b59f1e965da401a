// A RemoteOptimizer whose pull breaks off, and whose server then does not let it in again: after
// that error the model holds a mixture, which is never trained on nor pushed.

#include <grpcpp/grpcpp.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/job_flags.h"
#include "worker/torch/remote_optimizer.h"

namespace sluice {
namespace {

// Too many for PushPull, whose answer is one message and cannot be torn.
constexpr int kParameters = kMostPushPullElements + 2;
constexpr float kOffered = 8;  // each parameter, before a push
constexpr float kServed = 3;   // each parameter, after any push

// A server that takes every push, and breaks off the pull before the last parameter.
class TearingServer final : public v1::ParameterServer::Service {
 public:
  TearingServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~TearingServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  std::atomic<bool> lets_in{true};
  std::atomic<int> pushes{0};

 private:
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*,
                    grpc::ServerWriter<v1::JoinEvent>* writer) override {
    if (!lets_in) return ToGrpcStatus(MakeError(Reason::kEvicted, "a was evicted"));
    Welcome welcome;
    welcome.session = SessionId(++sessions_);
    welcome.incarnation = Incarnation(1);
    welcome.initialized = pushes > 0;
    welcome.resumed = true;
    welcome.last_sequence = Sequence(static_cast<uint64_t>(pushes));
    welcome.lease = absl::Hours(1);
    v1::JoinEvent event;
    *event.mutable_welcome() = ToProto(welcome);
    writer->Write(event);
    return grpc::Status::OK;
  }

  grpc::Status InitializeParams(grpc::ServerContext*,
                                grpc::ServerReader<v1::InitializeParamsRequest>* reader,
                                v1::InitializeParamsResponse* response) override {
    v1::InitializeParamsRequest message;
    while (reader->Read(&message)) {
    }
    response->set_accepted(true);
    return grpc::Status::OK;
  }

  grpc::Status PushGradients(grpc::ServerContext*,
                             grpc::ServerReader<v1::PushGradientsRequest>* reader,
                             v1::PushGradientsResponse* response) override {
    v1::PushGradientsRequest message;
    while (reader->Read(&message)) {
    }
    ++pushes;
    response->set_disposition(v1::APPLIED);
    response->set_step(static_cast<uint64_t>(pushes));
    response->set_incarnation(1);
    return grpc::Status::OK;
  }

  // A pull that comes before its push waits for it.
  grpc::Status PullParams(grpc::ServerContext* context, const v1::PullParamsRequest* request,
                          grpc::ServerWriter<v1::PullParamsResponse>* writer) override {
    while (request->after() > static_cast<uint64_t>(pushes)) {
      if (context->IsCancelled()) return grpc::Status::CANCELLED;
      std::this_thread::yield();
    }
    v1::PullParamsResponse header;
    header.mutable_header()->set_step(static_cast<uint64_t>(pushes));
    header.mutable_header()->set_incarnation(1);
    writer->Write(header);
    const bool trained = pushes > 0;
    const bool whole = !trained || torn_.exchange(true);
    v1::PullParamsResponse chunk;
    *chunk.mutable_chunk() =
        PayloadOf(0, Values(whole ? kParameters : kParameters - 1, trained ? kServed : kOffered));
    writer->Write(chunk);
    if (whole) return grpc::Status::OK;
    lets_in = false;
    return {grpc::StatusCode::UNAVAILABLE, "the server goes"};
  }

  int port_ = 0;
  std::atomic<uint64_t> sessions_{0};
  std::atomic<bool> torn_{false};
  std::unique_ptr<grpc::Server> server_;
};

// Weights that begin as kOffered.
class Weights final : public torch::nn::Module {
 public:
  Weights() : w_(register_parameter("w", torch::full({kParameters}, kOffered))) {}

  Values w() const { return Values(w_.data_ptr<float>(), w_.data_ptr<float>() + kParameters); }
  void Backward() const { w_.sum().backward(); }

 private:
  torch::Tensor w_;
};

Job JobAt(const TearingServer& server) {
  JobFlags flags;
  flags.server = server.address();
  flags.name = "a";
  flags.connect_timeout = 30;
  return Job::Start(flags).value();
}

class TornStepTest : public ::testing::TestWithParam<absl::optional<LocalSteps>> {};

TEST_P(TornStepTest, IsFollowedByOneThatOnlyPullsCompleteParameters) {
  TearingServer server;
  const Job job = JobAt(server);
  Weights model;
  RemoteOptimizer optimizer(job, model, torch::optim::SGDOptions(1), GetParam());
  const auto step = [&] {
    optimizer.zero_grad();
    model.Backward();
    return optimizer.step();
  };
  EXPECT_THROW(step(), RemoteError);
  EXPECT_EQ(server.pushes, 1);
  server.lets_in = true;
  EXPECT_EQ(step().disposition, Disposition::kStaleDropped);
  EXPECT_EQ(server.pushes, 1);
  if (!GetParam().has_value() || GetParam()->elasticity == 1) {
    EXPECT_EQ(model.w(), Values(kParameters, kServed));
  } else {
    // Its own parameters, after one step and one move towards the first 8.
    EXPECT_EQ(model.w(), Values(kParameters, 7.5));
  }
  EXPECT_EQ(step().disposition, Disposition::kApplied);
  EXPECT_EQ(server.pushes, 2);
}

INSTANTIATE_TEST_SUITE_P(, TornStepTest,
                         ::testing::Values(absl::nullopt, LocalSteps{1, 1, 1},
                                           LocalSteps{1, 0.5, 1}));

}  // namespace
}  // namespace sluice

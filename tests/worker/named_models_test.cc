// Several models in one process: who takes part in which, and the call that holds the job for them.

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/status.h"
#include "worker/connection/grpc/job_hold.h"
#include "worker/job_flags.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using OldServer = v1::ParameterServer::Service;

// Serves on a free port while it exists.
template <typename Service>
class Serving {
 public:
  Serving() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Serving() { server_->Shutdown(std::chrono::system_clock::now()); }

  Service* operator->() { return &service_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A server that only holds the job. Any thread may call the methods.
class HoldService : public v1::ParameterServer::WithCallbackMethod_HoldJob<OldServer> {
 public:
  void SetJob(const std::string& job) {
    absl::MutexLock lock(&mu_);
    job_ = job;
  }
  void Refuse(const absl::Status& why) {
    absl::MutexLock lock(&mu_);
    refusal_ = why;
  }

  // Waits until so many calls have come, of which so many are open.
  bool Await(size_t came, size_t open) {
    absl::MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return models_.size() == came && open_.size() == open;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(30));
  }

  // As a server does that is killed.
  void Break() {
    std::set<Call*> open;
    {
      absl::MutexLock lock(&mu_);
      open = open_;
    }
    for (Call* call : open) call->End({grpc::StatusCode::UNAVAILABLE, "killed"});
  }

  // Which model the calls were for, in the order in which they came; and their tokens.
  std::vector<std::string> models() const {
    absl::MutexLock lock(&mu_);
    return models_;
  }
  std::vector<std::string> tokens() const {
    absl::MutexLock lock(&mu_);
    return tokens_;
  }

 private:
  class Call final : public grpc::ServerWriteReactor<v1::HoldJobResponse> {
   public:
    explicit Call(HoldService& service) : service_(service) {}
    void Answer(const std::string& job) {
      response_.set_job_id(job);
      StartWrite(&response_);
    }
    void End(const grpc::Status& status) {
      if (!ended_.exchange(true)) Finish(status);
    }
    void OnCancel() override { End(grpc::Status::CANCELLED); }
    void OnDone() override {
      service_.Remove(this);
      delete this;
    }

   private:
    HoldService& service_;
    v1::HoldJobResponse response_;
    std::atomic<bool> ended_{false};
  };

  grpc::ServerWriteReactor<v1::HoldJobResponse>* HoldJob(grpc::CallbackServerContext* context,
                                                         const v1::HoldJobRequest*) override {
    auto* const call = new Call(*this);
    const auto value = [&](const char* key) {
      const auto found = context->client_metadata().find(key);
      return found == context->client_metadata().end()
                 ? std::string()
                 : std::string(found->second.data(), found->second.size());
    };
    absl::MutexLock lock(&mu_);
    models_.push_back(value("sluice-model"));
    tokens_.push_back(value("authorization"));
    open_.insert(call);
    if (refusal_.ok()) {
      call->Answer(job_);
    } else {
      call->End(ToGrpcStatus(refusal_));
    }
    return call;
  }

  void Remove(Call* call) {
    absl::MutexLock lock(&mu_);
    open_.erase(call);
  }

  mutable absl::Mutex mu_;
  std::string job_ ABSL_GUARDED_BY(mu_) = "job";
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  std::set<Call*> open_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> models_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> tokens_ ABSL_GUARDED_BY(mu_);
};

// ---- The hold ----

GrpcConnectionOptions At(const std::string& address) {
  GrpcConnectionOptions options;
  options.address = address;
  return options;
}

TEST(JobHoldTest, HoldsTheJobUntilItIsDestroyed) {
  Serving<HoldService> server;
  GrpcConnectionOptions options = At(server.address());
  options.token = "secret";
  options.model = "critic";
  auto hold = JobHold::Open(options);
  ASSERT_THAT(hold, IsOk());
  EXPECT_TRUE(server->Await(1, 1));
  *hold = nullptr;
  EXPECT_TRUE(server->Await(1, 0));
  EXPECT_THAT(server->models(), ElementsAre(""));
  EXPECT_THAT(server->tokens(), ElementsAre("Bearer secret"));
}

TEST(JobHoldTest, OpensTheCallAgainWhenItBreaks) {
  Serving<HoldService> server;
  const auto hold = JobHold::Open(At(server.address()));
  ASSERT_THAT(hold, IsOk());
  for (size_t calls = 2; calls < 4; ++calls) {
    server->Break();
    EXPECT_TRUE(server->Await(calls, 1));
  }
}

TEST(JobHoldTest, DoesNotHoldAnotherJobAtTheAddress) {
  Serving<HoldService> server;
  const auto hold = JobHold::Open(At(server.address()));
  ASSERT_THAT(hold, IsOk());
  server->SetJob("another");
  server->Break();
  EXPECT_TRUE(server->Await(2, 0));
}

TEST(JobHoldTest, ReturnsWhyTheServerRefuses) {
  Serving<HoldService> server;
  server->Refuse(MakeError(Reason::kBadArgument, "the job has 2 servers"));
  EXPECT_THAT(JobHold::Open(At(server.address())),
              IsError(Reason::kBadArgument, HasSubstr("the job has 2 servers")));
  EXPECT_TRUE(server->Await(1, 0));
}

TEST(JobHoldTest, SaysThatAServerIsTooOld) {
  const Serving<OldServer> server;
  EXPECT_THAT(
      JobHold::Open(At(server.address())),
      HasCode(absl::StatusCode::kUnimplemented, HasSubstr("the server is too old for a job with "
                                                          "several models; upgrade it")));
}

TEST(JobHoldTest, SaysThatNoServerAnswers) {
  GrpcConnectionOptions options = At("127.0.0.1:1");
  options.connect_timeout = absl::ZeroDuration();
  EXPECT_THAT(JobHold::Open(options),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("no server at 127.0.0.1:1")));
}

// ---- The models of a worker ----

class NamedModelsTest : public ::testing::Test {
 protected:
  NamedModelsTest() {
    JobFlags flags;
    flags.server = server_.address();
    worker_.emplace(*WorkerContext::From(flags));
  }

  WorkerContext Of(const std::string& model) const { return *worker_->ForModel(model); }

  Serving<HoldService> server_;
  absl::optional<WorkerContext> worker_;
};

TEST_F(NamedModelsTest, EachIsTrainedByOneOptimizerAtATime) {
  auto critic = Of("critic").TakePart();
  ASSERT_THAT(critic, IsOk());
  EXPECT_THAT(Of("critic").TakePart(),
              HasCode(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("trains a model with the name \"critic\" already; give each")));
  EXPECT_THAT(Of("actor").TakePart(), IsOk());
  const auto unnamed = worker_->TakePart();
  EXPECT_THAT(unnamed, IsOk());
  EXPECT_THAT(worker_->TakePart(), HasCode(absl::StatusCode::kFailedPrecondition,
                                           HasSubstr("give the second model a name (name= in")));
  *critic = nullptr;
  EXPECT_THAT(Of("critic").TakePart(), IsOk());
}

TEST_F(NamedModelsTest, HoldTheJobOnceUntilTheirWorkerIsGone) {
  {
    const WorkerContext critic = Of("critic");
    EXPECT_TRUE(server_->Await(0, 0));  // one who follows it holds nothing
    EXPECT_THAT(critic.TakePart(), IsOk());
    EXPECT_THAT(Of("actor").TakePart(), IsOk());
  }
  EXPECT_TRUE(server_->Await(1, 1));
  worker_.reset();
  EXPECT_TRUE(server_->Await(1, 0));
}

TEST_F(NamedModelsTest, AnOnlyModelWithoutANameHoldsNothing) {
  EXPECT_THAT(worker_->TakePart(), IsOk());
  EXPECT_TRUE(server_->Await(0, 0));
}

TEST_F(NamedModelsTest, CannotBeWhereTheJobHasOnlyOne) {
  server_->Refuse(MakeError(Reason::kBadArgument, "the job has 2 servers"));
  EXPECT_THAT(Of("critic").TakePart(), IsError(Reason::kBadArgument, HasSubstr("2 servers")));
}

TEST_F(NamedModelsTest, HaveNamesThatADirectoryMayHave) {
  for (const char* name : {"", "two words", "../up", ".hidden", "caf\xc3\xa9"}) {
    EXPECT_THAT(worker_->ForModel(name), IsError(Reason::kBadArgument, HasSubstr("model's name")));
  }
  EXPECT_THAT(worker_->ForModel(std::string(64, 'a')), IsOk());
  EXPECT_THAT(worker_->ForModel(std::string(65, 'a')),
              IsError(Reason::kBadArgument, HasSubstr("64")));
}

}  // namespace
}  // namespace sluice

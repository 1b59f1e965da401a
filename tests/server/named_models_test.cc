#include "server/named_models.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/protocol/model_name.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/server/running_server.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

ServerOptions Serving(uint32_t workers, const std::string& directory = "") {
  ServerOptions options;
  options.shard = Sync(workers);
  options.listen = Address();
  options.listen->host = "127.0.0.1";
  options.durable.directory = directory;
  return options;
}

std::string NewDirectory() {
  const std::string path = ::testing::TempDir() + "/named_models";
  std::filesystem::remove_all(path);
  return path;
}

absl::StatusOr<std::unique_ptr<ServerConnection>> ConnectToModel(const std::string& address,
                                                                 const std::string& model) {
  GrpcConnectionOptions options;
  options.address = address;
  options.model = model;
  return ConnectOverGrpc(options);
}

// A worker that trains a model of three parameters, which begin at `first`.
class Trainer {
 public:
  Trainer(const std::string& address, const std::string& model, const std::string& name = "w",
          float first = 0)
      : client_(*ConnectToModel(address, model)), parameters_(3, first) {
    joined_ = client_.Join(WorkerRequest(name), absl::MakeSpan(parameters_));
  }

  const absl::Status& joined() const { return joined_; }
  absl::Status Step(float gradient) {
    return client_
        .PushPull(Share(Values(3, gradient)), 1, absl::nullopt, absl::MakeSpan(parameters_))
        .status();
  }
  absl::Status Leave() { return client_.Leave({}); }
  const Values& parameters() const { return parameters_; }

 private:
  ParameterClient client_;
  Values parameters_;
  absl::Status joined_;
};

// Calls that the worker's side has no class for.
class Caller {
 public:
  explicit Caller(const std::string& address)
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}

  std::vector<std::string> ListModels() {
    grpc::ClientContext context;
    v1::ListModelsResponse answer;
    EXPECT_TRUE(v1::Inspector::NewStub(channel_)->ListModels(&context, {}, &answer).ok());
    return {answer.names().begin(), answer.names().end()};
  }

  absl::StatusOr<v1::ServerState> StateOf(const std::string& model) {
    grpc::ClientContext context;
    if (!model.empty()) context.AddMetadata(kModelKey, model);
    v1::ServerState state;
    const grpc::Status status =
        v1::Inspector::NewStub(channel_)->GetServerState(&context, {}, &state);
    if (!status.ok()) return FromGrpcStatus(status);
    return state;
  }

  absl::Status Drain(const std::string& model) {
    grpc::ClientContext context;
    context.AddMetadata(kModelKey, model);
    v1::DrainResponse answer;
    return FromGrpcStatus(v1::Admin::NewStub(channel_)->Drain(&context, {}, &answer));
  }

  absl::Status Heartbeat(const std::string& model) {
    grpc::ClientContext context;
    context.AddMetadata(kModelKey, model);
    v1::HeartbeatRequest request;
    request.set_session(7);
    v1::HeartbeatResponse answer;
    return FromGrpcStatus(
        v1::ParameterServer::NewStub(channel_)->Heartbeat(&context, request, &answer));
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

// An open call of HoldJob.
class Hold {
 public:
  explicit Hold(const Caller& caller)
      : stub_(v1::ParameterServer::NewStub(caller.channel())),
        stream_(stub_->HoldJob(&context_, {})) {
    v1::HoldJobResponse answer;
    holds_ = stream_->Read(&answer);
  }

  bool holds() const { return holds_; }
  void LetGo() { context_.TryCancel(); }
  absl::Status End() { return FromGrpcStatus(stream_->Finish()); }

 private:
  const std::unique_ptr<v1::ParameterServer::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReader<v1::HoldJobResponse>> stream_;
  bool holds_ = false;
};

TEST(NamedModelsTest, AWorkerTrainsSeveralModelsApart) {
  RunningServer server(Serving(1));
  Trainer unnamed(server.address(), "");
  Trainer critic(server.address(), "critic", "w", 10);
  Trainer twin(server.address(), "critic-2", "w", 20);
  EXPECT_THAT(unnamed.Step(1), IsOk());
  EXPECT_THAT(critic.Step(2), IsOk());
  EXPECT_THAT(critic.Step(2), IsOk());
  EXPECT_THAT(twin.Step(-1), IsOk());
  EXPECT_EQ(unnamed.parameters(), Values(3, -1));
  EXPECT_EQ(critic.parameters(), Values(3, 6));
  EXPECT_EQ(twin.parameters(), Values(3, 21));
  Caller caller(server.address());
  EXPECT_THAT(caller.ListModels(), ElementsAre("critic", "critic-2"));
  EXPECT_EQ(caller.StateOf("")->step(), 1u);
  EXPECT_EQ(caller.StateOf("critic")->step(), 2u);
  EXPECT_EQ(caller.StateOf("critic")->job_id(), caller.StateOf("")->job_id());
  for (Trainer* const one : {&unnamed, &critic, &twin}) EXPECT_THAT(one->Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(NamedModelsTest, TheJobGoesOnUntilTheLastModelIsLeft) {
  RunningServer server(Serving(1));
  Trainer unnamed(server.address(), "");
  Trainer critic(server.address(), "critic");
  EXPECT_THAT(unnamed.Leave(), IsOk());
  for (int i = 0; i < 20; ++i) EXPECT_THAT(critic.Step(1), IsOk());
  EXPECT_THAT(critic.Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(NamedModelsTest, AStepOfAModelWaitsForItsOwnWorkersOnly) {
  RunningServer server(Serving(2));
  Trainer a(server.address(), "critic", "a");
  Trainer b(server.address(), "critic", "b");
  std::thread other([&b] { EXPECT_THAT(b.Step(4), IsOk()); });
  EXPECT_THAT(a.Step(2), IsOk());
  other.join();
  EXPECT_EQ(a.parameters(), Values(3, -3));
  EXPECT_EQ(b.parameters(), Values(3, -3));
  EXPECT_THAT(a.Leave(), IsOk());
  EXPECT_THAT(b.Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(NamedModelsTest, TheJobIsAsTheModelsThatTrain) {
  const ServerOptions options = Serving(1);
  RunningServer server(options);
  Caller caller(server.address());
  EXPECT_EQ(caller.StateOf("")->verdict().kind(), v1::Verdict::WAITING);
  Trainer critic(server.address(), "critic");
  EXPECT_THAT(critic.Step(1), IsOk());
  EXPECT_EQ(caller.StateOf("")->verdict().kind(), v1::Verdict::FINE);
  EXPECT_THAT(caller.StateOf("")->verdict().text(),
              StartsWith("model critic: training is at step 1"));
  EXPECT_THAT(caller.StateOf("critic")->verdict().text(), StartsWith("training is at step 1"));
  EXPECT_THAT(critic.Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 0);
  std::vector<std::string> told;
  for (const LoggedLine& line : options.log->After(0, LogRing::kMostLines)) {
    told.push_back(line.text);
  }
  EXPECT_THAT(told, Contains(StartsWith("model critic: training has finished at step 1, ")));
  EXPECT_THAT(told, Contains(AllOf(StartsWith("model critic: w"),
                                   HasSubstr(" has left, after 1 gradient that counted; "))));
}

TEST(NamedModelsTest, AJobThatIsHeldOutlivesItsModels) {
  RunningServer server(Serving(1));
  Caller caller(server.address());
  Hold hold(caller);
  ASSERT_TRUE(hold.holds());
  for (const std::string fold : {"fold-1", "fold-2", "fold-3"}) {
    Trainer trainer(server.address(), fold);
    EXPECT_THAT(trainer.Step(1), IsOk());
    EXPECT_EQ(trainer.parameters(), Values(3, -1)) << fold;
    EXPECT_THAT(trainer.Leave(), IsOk());
  }
  EXPECT_THAT(caller.ListModels(), ElementsAre("fold-1", "fold-2", "fold-3"));
  hold.LetGo();
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(NamedModelsTest, AHoldEndsWithOkWhenTheServerGoesDown) {
  RunningServer server(Serving(1));
  Caller caller(server.address());
  Hold hold(caller);
  Trainer trainer(server.address(), "");
  grpc::ClientContext context;
  v1::DrainResponse answer;
  EXPECT_TRUE(v1::Admin::NewStub(caller.channel())->Drain(&context, {}, &answer).ok());
  EXPECT_EQ(server.exit_code(), 0);
  EXPECT_THAT(hold.End(), IsOk());
}

TEST(NamedModelsTest, DrainEndsOneModelAlone) {
  RunningServer server(Serving(1));
  Trainer unnamed(server.address(), "");
  Trainer critic(server.address(), "critic");
  Caller caller(server.address());
  EXPECT_THAT(caller.Drain("critic"), IsOk());
  EXPECT_THAT(critic.Step(1), IsError(Reason::kDraining, HasSubstr("")));
  EXPECT_THAT(unnamed.Step(1), IsOk());
  EXPECT_THAT(unnamed.Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(NamedModelsTest, AModelWhoseWorkersAreLostEndsTheJobWithItsCode) {
  ServerOptions options = Serving(1);
  options.shard.lease = absl::Milliseconds(200);
  RunningServer server(options);
  Trainer unnamed(server.address(), "");
  EXPECT_THAT(unnamed.Step(1), IsOk());
  {
    Trainer critic(server.address(), "critic");
    EXPECT_THAT(critic.Step(1), IsOk());
  }
  EXPECT_THAT(unnamed.Leave(), IsOk());
  EXPECT_EQ(server.exit_code(), 3);
}

TEST(NamedModelsTest, OnlyAJoinBeginsAModel) {
  RunningServer server(Serving(1));
  Caller caller(server.address());
  EXPECT_THAT(caller.StateOf("critic"),
              IsError(Reason::kNotFound, HasSubstr("this job has no model \"critic\"")));
  EXPECT_THAT(caller.Heartbeat("critic"),
              IsError(Reason::kUnknownSession, HasSubstr("no model \"critic\"; join again")));
  EXPECT_THAT((*ConnectToModel(server.address(), "critic"))->Join(ObserverRequest("o")),
              IsError(Reason::kNotInitialized, HasSubstr("no model \"critic\"; a worker begins")));
  EXPECT_THAT(caller.ListModels(), IsEmpty());
  Trainer trainer(server.address(), "");
  EXPECT_THAT(trainer.Leave(), IsOk());
}

TEST(NamedModelsTest, AModelWhoseWorkerWasRefusedIsNotListed) {
  RunningServer server(Serving(1));
  Caller caller(server.address());
  JoinRequest request = WorkerRequest("w");
  request.job_id = "another";
  EXPECT_THAT((*ConnectToModel(server.address(), "critic"))->Join(request),
              IsError(Reason::kWrongJob, HasSubstr("not \"another\"")));
  EXPECT_THAT(caller.ListModels(), IsEmpty());
  Trainer critic(server.address(), "critic");
  EXPECT_THAT(caller.ListModels(), ElementsAre("critic"));
  EXPECT_THAT(critic.Leave(), IsOk());
}

TEST(NamedModelsTest, AnObserverBeginsNoModel) {
  const TestAuthority authority;
  ServerOptions options = Serving(1);
  options.credentials = SourceOf(authority.Server());
  RunningServer server(options);
  GrpcConnectionOptions connection;
  connection.address = server.address();
  connection.model = "critic";
  connection.credentials = SourceOf(authority.Client({Role::kObserver}));
  const auto observer = *ConnectOverGrpc(connection);
  EXPECT_THAT(observer->Join(ObserverRequest("o")),
              IsError(Reason::kNotInitialized, HasSubstr("no model \"critic\"; a worker begins")));
  connection.credentials = SourceOf(authority.Client({Role::kWorker}));
  const auto worker = *ConnectOverGrpc(connection);
  const auto welcome = worker->Join(WorkerRequest("w"));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_THAT(observer->Join(ObserverRequest("o")), IsOk());
  EXPECT_THAT(worker->Leave(welcome->session, {}), IsOk());
}

TEST(NamedModelsTest, RefusesNamesThatAreNoDirectory) {
  const std::string directory = NewDirectory();
  RunningServer server(Serving(1, directory));
  for (const std::string name : {"..", "../x", ".hidden", "a/b", "-x", "a b", "\x7f"}) {
    EXPECT_THAT(CheckModelName(name), IsError(Reason::kBadArgument, HasSubstr("the model's name")));
  }
  EXPECT_THAT(CheckModelName(std::string(65, 'x')), IsError(Reason::kBadArgument, HasSubstr("64")));
  EXPECT_THAT(CheckModelName(std::string(64, 'x')), IsOk());
  EXPECT_THAT(CheckModelName("fold-2.critic_1"), IsOk());
  const Trainer refused(server.address(), "../x");
  EXPECT_THAT(refused.joined(), IsError(Reason::kBadArgument, HasSubstr("\"../x\"")));
  EXPECT_FALSE(std::filesystem::exists(directory + "/x"));
  Trainer trainer(server.address(), "");
  EXPECT_THAT(trainer.Leave(), IsOk());
}

TEST(NamedModelsTest, HasAMostOfModels) {
  NamedModels models(Serving(1), nullptr);
  ASSERT_THAT(models.Restore("job"), IsOk());
  for (size_t i = 0; i < NamedModels::kMost; ++i) {
    ASSERT_THAT(models.Find(absl::StrCat("m", i), true), IsOk());
  }
  EXPECT_THAT(models.Find("m", true), IsError(Reason::kTooManyModels, HasSubstr("256")));
  EXPECT_THAT(models.Find("m7", true), IsOk());
}

TEST(NamedModelsTest, AJobThatGoesBackHasOneModel) {
  ServerOptions options = Serving(1, NewDirectory());
  options.shard.guards.on_divergence = DivergenceAction::kRestore;
  RunningServer server(options);
  const Trainer refused(server.address(), "critic");
  EXPECT_THAT(refused.joined(),
              IsError(Reason::kBadArgument,
                      AllOf(HasSubstr("\"critic\""), HasSubstr("this job has one model"))));
  Caller caller(server.address());
  Hold hold(caller);
  EXPECT_FALSE(hold.holds());
  EXPECT_THAT(hold.End(), IsError(Reason::kBadArgument, HasSubstr("this job has one model")));
  Trainer trainer(server.address(), "");
  EXPECT_THAT(trainer.Leave(), IsOk());
}

// All is written before the server answers, so that it may be killed at any time.
TEST(NamedModelsTest, AServerThatIsStartedAgainGoesOnWithAllModels) {
  const std::string directory = NewDirectory();
  ServerOptions options = Serving(1, directory);
  options.durable.durability = Durability::kJournal;
  options.exit_when_finished = false;
  std::string job;
  {
    auto first = Server::Start(options);
    ASSERT_THAT(first, IsOk());
    const std::string address = (*first)->address().ToString();
    Trainer unnamed(address, "");
    Trainer critic(address, "critic", "w", 10);
    for (int i = 0; i < 3; ++i) EXPECT_THAT(critic.Step(1), IsOk());
    EXPECT_THAT(unnamed.Step(1), IsOk());
    job = Caller(address).StateOf("critic")->job_id();
  }
  options.exit_when_finished = true;
  std::filesystem::create_directory(directory + "/models/refused");
  std::ofstream(directory + "/models/stray") << "not a model";
  RunningServer second(options);
  Caller caller(second.address());
  EXPECT_THAT(caller.ListModels(), ElementsAre("critic"));
  EXPECT_EQ(caller.StateOf("critic")->job_id(), job);
  Trainer critic(second.address(), "critic");
  EXPECT_EQ(critic.parameters(), Values(3, 7));
  EXPECT_THAT(critic.Step(1), IsOk());
  EXPECT_EQ(critic.parameters(), Values(3, 6));
  Trainer unnamed(second.address(), "");
  EXPECT_EQ(unnamed.parameters(), Values(3, -1));
  EXPECT_THAT(critic.Leave(), IsOk());
  EXPECT_THAT(unnamed.Leave(), IsOk());
  EXPECT_EQ(second.exit_code(), 0);
}

// In a launch, whose server has died, the models that have not ended are waited for.
TEST(NamedModelsTest, AServerOfTheSameLaunchWaitsForTheModelsThatHaveNotEnded) {
  const std::string directory = NewDirectory();
  ServerOptions options = Serving(1, directory);
  options.durable.durability = Durability::kJournal;
  options.exit_when_finished = false;
  {
    auto first = Server::Start(options);
    ASSERT_THAT(first, IsOk());
    const std::string address = (*first)->address().ToString();
    Trainer done(address, "done");
    Trainer critic(address, "critic");
    EXPECT_THAT(done.Step(1), IsOk());
    EXPECT_THAT(critic.Step(1), IsOk());
    EXPECT_THAT(done.Leave(), IsOk());
  }
  options.exit_when_finished = true;
  options.shard.launched = Launched::kAgain;
  RunningServer second(options);
  Trainer critic(second.address(), "critic");
  ASSERT_THAT(critic.joined(), IsOk());
  EXPECT_EQ(critic.parameters(), Values(3, -1));
  EXPECT_THAT(critic.Leave(), IsOk());
  EXPECT_EQ(second.exit_code(), 0);
}

}  // namespace
}  // namespace sluice

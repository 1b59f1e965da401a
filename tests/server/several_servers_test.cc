// Jobs with several servers in this process, and a worker that is made of the calls it sends.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/net/private_directory.h"
#include "common/tensor/stripes.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/server/running_server.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/server/request_stream.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint32_t kElements = 1000;

class SeveralServersTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  SeveralServersTest() : directory_(*PrivateDirectory::Create()) {}

  Address SocketOf(uint32_t index) const {
    Address address;
    address.unix_path = absl::StrCat(directory_->path(), "/", index, ".sock");
    return address;
  }

  ServerOptions FirstOptions(uint32_t servers) const {
    ServerOptions options;
    options.shard = Sync(1);
    options.listen = SocketOf(0);
    options.token = "secret";
    options.servers = servers;
    return options;
  }

  ReplicaServerOptions ReplicaOptions(uint32_t index, uint32_t servers) const {
    ReplicaServerOptions options;
    options.index = index;
    options.servers = servers;
    options.leader = SocketOf(0).ToString();
    options.token = "secret";
    options.listen = SocketOf(index);
    return options;
  }

  const std::unique_ptr<PrivateDirectory> directory_;
};

class HandMadeWorker {
 public:
  using Push = RequestStream<v1::PushGradientsRequest, v1::PushGradientsResponse>;
  using Offer = RequestStream<v1::InitializeParamsRequest, v1::InitializeParamsResponse>;

  // Joins at `first`, again and again until all servers have come.
  explicit HandMadeWorker(const std::string& first) {
    Connect(first);
    do {
      joining_ = Context();
      events_ = stubs_[0]->Join(joining_.get(), ToProto(WorkerRequest("a", kElements)));
      v1::JoinEvent event;
      if (events_->Read(&event)) welcome_ = event.welcome();
    } while (welcome_.session() == 0 && absl::IsUnavailable(FromGrpcStatus(events_->Finish())));
    for (int i = 1; i < welcome_.servers_size(); ++i) Connect(welcome_.servers(i).address());
  }

  const v1::Welcome& welcome() const { return welcome_; }
  v1::ParameterServer::Stub& stub(size_t server) { return *stubs_[server]; }

  std::unique_ptr<grpc::ClientContext> Context() const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("authorization", "Bearer secret");
    return context;
  }

  uint32_t servers() const { return static_cast<uint32_t>(stubs_.size()); }

  // The part of the vector that the server holds.
  Values PartOf(const Values& vector, uint32_t server) const {
    const Stripes stripes(vector.size(), servers());
    Values part;
    for (size_t i = 0; i < vector.size(); ++i) {
      if (stripes.StripeOf(i) == server) part.push_back(vector[i]);
    }
    return part;
  }

  absl::Status Offered(const Values& parameters) {
    std::vector<std::unique_ptr<Offer>> offers;
    ++attempt_;
    for (uint32_t i = 0; i < servers(); ++i) {
      offers.push_back(std::make_unique<Offer>(Context(), [&](auto* context, auto* response) {
        return stubs_[i]->InitializeParams(context, response);
      }));
      v1::InitializeParamsRequest header = HeaderOf(welcome_.session());
      header.mutable_header()->set_attempt(attempt_);
      offers[i]->Write(header);
      offers[i]->Write(ParametersOf(0, PartOf(parameters, i)));
      offers[i]->End();
    }
    absl::Status status;
    for (auto& offer : offers) {
      const auto answer = offer->Answer();
      if (status.ok()) status = answer.status();
    }
    return status;
  }

  // Returns the dispositions that the servers answer.
  std::vector<v1::Disposition> Pushed(const Values& gradient, uint64_t step) {
    std::vector<std::unique_ptr<Push>> pushes;
    v1::PushHeader header;
    header.set_session(welcome_.session());
    header.set_sequence(++sequence_);
    header.set_step(step);
    header.set_incarnation(welcome_.incarnation());
    header.set_samples(1);
    header.set_attempt(++attempt_);
    for (uint32_t i = 0; i < servers(); ++i) {
      pushes.push_back(std::make_unique<Push>(Context(), [&](auto* context, auto* response) {
        return stubs_[i]->PushGradients(context, response);
      }));
      pushes[i]->Write(HeaderOf(header));
      pushes[i]->Write(GradientOf(0, PartOf(gradient, i)));
      pushes[i]->End();
    }
    std::vector<v1::Disposition> dispositions;
    for (auto& push : pushes) {
      const auto answer = push->Answer();
      EXPECT_THAT(answer, IsOk());
      dispositions.push_back(answer.ok() ? answer->disposition() : v1::DISPOSITION_UNSPECIFIED);
    }
    return dispositions;
  }

  // The vector of the step, which all servers send.
  Values Pulled(uint64_t min_step) {
    v1::PullParamsRequest request;
    request.set_session(welcome_.session());
    request.set_min_step(min_step);
    request.set_number(++pulls_);
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::PullParamsResponse>>> readers;
    for (auto& stub : stubs_) {
      contexts.push_back(Context());
      readers.push_back(stub->PullParams(contexts.back().get(), request));
    }
    std::vector<Values> parts;
    for (auto& reader : readers) parts.push_back(Read(*reader, min_step));
    return Joined(parts);
  }

  absl::Status Left() {
    v1::LeaveRequest request;
    request.set_session(welcome_.session());
    v1::LeaveResponse response;
    return FromGrpcStatus(stubs_[0]->Leave(Context().get(), request, &response));
  }

 private:
  void Connect(const std::string& address) {
    stubs_.push_back(v1::ParameterServer::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials())));
  }

  static Values Read(grpc::ClientReader<v1::PullParamsResponse>& reader, uint64_t step) {
    v1::PullParamsResponse message;
    EXPECT_TRUE(reader.Read(&message));
    EXPECT_EQ(message.header().step(), step);
    Values part;
    while (reader.Read(&message)) {
      const std::string& bytes = message.chunk().payload();
      const auto* const floats = reinterpret_cast<const float*>(bytes.data());
      part.insert(part.end(), floats, floats + bytes.size() / sizeof(float));
    }
    EXPECT_THAT(FromGrpcStatus(reader.Finish()), IsOk());
    return part;
  }

  Values Joined(const std::vector<Values>& parts) const {
    const Stripes stripes(kElements, servers());
    Values vector(kElements);
    for (uint32_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].size(), stripes.SizeOf(i));
      for (size_t k = 0; k < parts[i].size(); ++k) vector[stripes.InVector(i, k)] = parts[i][k];
    }
    return vector;
  }

  std::vector<std::unique_ptr<v1::ParameterServer::Stub>> stubs_;
  std::unique_ptr<grpc::ClientContext> joining_;
  std::unique_ptr<grpc::ClientReader<v1::JoinEvent>> events_;
  v1::Welcome welcome_;
  uint32_t attempt_ = 0;
  uint64_t sequence_ = 0;
  uint64_t pulls_ = 0;
};

Values Pattern(float scale) {
  Values values(kElements);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * static_cast<float>(i % 37) - 0.25f * static_cast<float>(i % 11);
  }
  return values;
}

// Two steps. Returns the parameters that they make.
Values Train(HandMadeWorker& worker) {
  EXPECT_THAT(worker.Offered(Pattern(1)), IsOk());
  EXPECT_EQ(worker.Pulled(0), Pattern(1));
  for (uint64_t step = 0; step < 2; ++step) {
    const auto answers = worker.Pushed(Pattern(0.5f + static_cast<float>(step)), step);
    EXPECT_EQ(answers.at(0), v1::APPLIED);
    for (size_t i = 1; i < answers.size(); ++i) EXPECT_EQ(answers[i], v1::PART_TAKEN);
    worker.Pulled(step + 1);
  }
  return worker.Pulled(2);
}

TEST_P(SeveralServersTest, TrainsToTheBitsOfOneServer) {
  Values of_one;
  {
    ServerOptions options = FirstOptions(1);
    RunningServer server(options);
    HandMadeWorker worker(server.address());
    of_one = Train(worker);
    ASSERT_THAT(worker.Left(), IsOk());
    EXPECT_EQ(server.exit_code(), 0);
  }
  const uint32_t servers = GetParam();
  RunningServer first(FirstOptions(servers));
  std::vector<std::unique_ptr<RunningReplica>> replicas;
  for (uint32_t i = 1; i < servers; ++i) {
    replicas.push_back(std::make_unique<RunningReplica>(ReplicaOptions(i, servers)));
  }
  HandMadeWorker worker(first.address());
  ASSERT_THAT(worker.welcome().servers(), SizeIs(servers));
  EXPECT_EQ(worker.welcome().servers(0).address(), first.address());
  EXPECT_EQ(Train(worker), of_one);
  ASSERT_THAT(worker.Left(), IsOk());
  EXPECT_EQ(first.exit_code(), 0);
  for (auto& replica : replicas) EXPECT_EQ(replica->exit_code(), 0);
}

TEST_F(SeveralServersTest, AReplicaThatIsRefusedEndsWithTwo) {
  RunningServer first(FirstOptions(2));
  ReplicaServerOptions options = ReplicaOptions(1, 2);
  options.token = "wrong";
  EXPECT_EQ(RunningReplica(options).exit_code(), 2);
  options = ReplicaOptions(1, 3);
  EXPECT_EQ(RunningReplica(options).exit_code(), 2);
  options = ReplicaOptions(1, 2);
  options.job_id = "another";
  EXPECT_EQ(RunningReplica(options).exit_code(), 2);
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  options = ReplicaOptions(1, 2);
  options.listen = SocketOf(9);
  EXPECT_EQ(RunningReplica(options).exit_code(), 2);  // its index is taken
  EXPECT_THAT(worker.Left(), IsOk());
  EXPECT_EQ(first.exit_code(), 0);
  EXPECT_EQ(replica.exit_code(), 0);
}

TEST_F(SeveralServersTest, AReplicaHasAnIndexOfTheJob) {
  for (const uint32_t index : {0u, 2u}) {
    EXPECT_THAT(ReplicaServer::Start(ReplicaOptions(index, 2)),
                IsError(Reason::kBadArgument, HasSubstr("of 2 holds no stripe")));
  }
}

TEST_F(SeveralServersTest, AReplicaGivesUpAFirstServerThatDoesNotCome) {
  ReplicaServerOptions options = ReplicaOptions(1, 2);
  options.connect_timeout = absl::ZeroDuration();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunningReplica(options).exit_code(), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("; is it running, and without TLS, as this server?"));
}

TEST_F(SeveralServersTest, OtherServersNameTheFirst) {
  RunningServer first(FirstOptions(2));
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  v1::HeartbeatRequest request;
  v1::HeartbeatResponse response;
  const auto status = worker.stub(1).Heartbeat(worker.Context().get(), request, &response);
  EXPECT_THAT(FromGrpcStatus(status),
              IsError(Reason::kNotFirstServer, HasSubstr(SocketOf(0).ToString())));
  EXPECT_THAT(worker.Left(), IsOk());
}

TEST_F(SeveralServersTest, APushAndItsPullAreTwoCalls) {
  RunningServer first(FirstOptions(2));
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  Train(worker);
  v1::PushPullRequest request;
  request.mutable_push()->set_session(worker.welcome().session());
  const auto call = [&](size_t server) {
    v1::PushPullResponse response;
    const auto context = worker.Context();
    const auto writer = worker.stub(server).PushPull(context.get(), &response);
    writer->Write(request);
    writer->WritesDone();
    return FromGrpcStatus(writer->Finish());
  };
  EXPECT_THAT(call(0), IsError(Reason::kBadArgument, HasSubstr("on several servers")));
  EXPECT_THAT(call(1), IsError(Reason::kNotFirstServer, HasSubstr(SocketOf(0).ToString())));
  EXPECT_THAT(worker.Left(), IsOk());
}

TEST_F(SeveralServersTest, ReadsMayBeInconsistent) {
  ServerOptions options = FirstOptions(2);
  options.shard = Async(1);
  options.shard.consistency.inconsistent_reads = true;
  RunningServer first(options);
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  Train(worker);
  v1::PullParamsRequest pull;
  pull.set_session(worker.welcome().session());
  pull.set_number(100);
  for (size_t i = 0; i < 2; ++i) {
    const auto context = worker.Context();
    v1::PullParamsResponse message;
    const auto reader = worker.stub(i).PullParams(context.get(), pull);
    ASSERT_TRUE(reader->Read(&message));
    EXPECT_TRUE(message.header().inconsistent()) << "server " << i;
    while (reader->Read(&message)) {
    }
    EXPECT_THAT(FromGrpcStatus(reader->Finish()), IsOk());
  }
  EXPECT_THAT(worker.Left(), IsOk());
}

// ---- Lanes ----

// A push and a pull of which a lane carries everything, at each server.
TEST_F(SeveralServersTest, LanesCarryPartsOfAPushAndOfAPull) {
  RunningServer first(FirstOptions(2));
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  ASSERT_THAT(worker.Offered(Values(kElements, 1)), IsOk());
  worker.Pulled(0);  // now the session is known at all servers
  v1::PushHeader header;
  header.set_session(worker.welcome().session());
  header.set_sequence(1);
  header.set_incarnation(worker.welcome().incarnation());
  header.set_samples(1);
  header.set_attempt(2);
  header.set_call_number(1);
  std::vector<std::unique_ptr<HandMadeWorker::Push>> pushes;
  for (uint32_t i = 0; i < 2; ++i) {
    pushes.push_back(
        std::make_unique<HandMadeWorker::Push>(worker.Context(), [&](auto* context, auto* answer) {
          return worker.stub(i).PushGradients(context, answer);
        }));
    pushes[i]->Write(HeaderOf(header));
    RequestStream<v1::PushGradientsRequest, v1::PushLaneResponse> lane(
        worker.Context(),
        [&](auto* context, auto* answer) { return worker.stub(i).PushLane(context, answer); });
    lane.Write(LaneOf(header.session(), 1));
    lane.Write(GradientOf(0, worker.PartOf(Pattern(1), i)));
    lane.End();
    EXPECT_THAT(lane.Answer().status(), IsOk()) << "server " << i;
    pushes[i]->End();
  }
  EXPECT_EQ(pushes[1]->Answer()->disposition(), v1::PART_TAKEN);
  EXPECT_EQ(pushes[0]->Answer()->disposition(), v1::APPLIED);
  Values expected = Pattern(1);
  for (float& value : expected) value = 1 - value;
  EXPECT_EQ(worker.Pulled(1), expected);
  EXPECT_THAT(worker.Left(), IsOk());
}

TEST_F(SeveralServersTest, ALaneOfAnUnknownSessionIsRefusedEverywhere) {
  RunningServer first(FirstOptions(2));
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  v1::Lane lane;
  lane.set_session(worker.welcome().session() + 1);
  lane.set_call_number(1);
  for (size_t i = 0; i < 2; ++i) {
    const auto context = worker.Context();
    v1::PullParamsResponse message;
    const auto reader = worker.stub(i).PullLane(context.get(), lane);
    EXPECT_FALSE(reader->Read(&message));
    EXPECT_THAT(FromGrpcStatus(reader->Finish()), IsError(Reason::kUnknownSession, HasSubstr("")));
  }
  EXPECT_THAT(worker.Left(), IsOk());
}

// What the server at `address` answers.
v1::ListServersResponse ServersAt(const std::string& address) {
  const auto inspector =
      v1::Inspector::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ListServersResponse response;
  EXPECT_THAT(FromGrpcStatus(inspector->ListServers(&context, {}, &response)), IsOk());
  return response;
}

TEST_P(SeveralServersTest, TheFirstServerShowsAllServers) {
  const uint32_t servers = GetParam();
  RunningServer first(FirstOptions(servers));
  std::vector<std::unique_ptr<RunningReplica>> replicas;
  for (uint32_t i = 1; i < servers; ++i) {
    replicas.push_back(std::make_unique<RunningReplica>(ReplicaOptions(i, servers)));
  }
  HandMadeWorker worker(first.address());
  Train(worker);
  const Stripes stripes(kElements, servers);
  v1::ListServersResponse shown;
  // A replica tells its figures several times a second.
  do shown = ServersAt(first.address());
  while (shown.servers(static_cast<int>(servers) - 1).step() < 2);
  ASSERT_THAT(shown.servers(), SizeIs(servers));
  for (uint32_t i = 0; i < servers; ++i) {
    const v1::Server& server = shown.servers(static_cast<int>(i));
    EXPECT_EQ(server.index(), i);
    EXPECT_EQ(server.address(), SocketOf(i).ToString());
    EXPECT_EQ(server.elements(), stripes.SizeOf(i));
    EXPECT_EQ(server.bytes(), 4 * stripes.SizeOf(i));
    EXPECT_TRUE(server.connected());
    EXPECT_TRUE(server.has_since());
    EXPECT_EQ(server.awaited(), "");
  }
  EXPECT_THAT(worker.Left(), IsOk());
}

TEST_F(SeveralServersTest, TheFirstServerShowsWhoHasNotCome) {
  RunningServer first(FirstOptions(2));
  const v1::ListServersResponse shown = ServersAt(first.address());
  ASSERT_THAT(shown.servers(), SizeIs(2));
  EXPECT_EQ(shown.servers(0).awaited(), "");
  EXPECT_EQ(shown.servers(1).address(), "");
  EXPECT_FALSE(shown.servers(1).connected());
  EXPECT_EQ(shown.servers(1).awaited(), "to come");
  RunningReplica replica(ReplicaOptions(1, 2));
  HandMadeWorker worker(first.address());
  EXPECT_THAT(worker.Left(), IsOk());
}

// The answer of the server at that address, as text, to a look at values 500 to 599.
std::string TensorAt(const std::string& address, const HandMadeWorker& worker) {
  const auto inspector =
      v1::Inspector::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::ListParametersResponse list;
  EXPECT_THAT(FromGrpcStatus(inspector->ListParameters(worker.Context().get(), {}, &list)), IsOk());
  EXPECT_THAT(list.parameters(), SizeIs(1));
  EXPECT_EQ(list.parameters(0).length(), kElements);
  v1::GetParameterRequest request;
  request.set_name(list.parameters(0).name());
  request.set_first(500);
  request.set_count(100);
  v1::GetParameterResponse response;
  const auto context = worker.Context();
  EXPECT_THAT(FromGrpcStatus(inspector->GetParameter(context.get(), request, &response)), IsOk());
  EXPECT_EQ(response.values_size(), 100);
  return response.SerializeAsString();
}

TEST_P(SeveralServersTest, TheFirstServerShowsATensorToTheBitsOfOneServer) {
  std::string alone;
  {
    RunningServer server(FirstOptions(1));
    HandMadeWorker worker(server.address());
    ASSERT_THAT(worker.Offered(Pattern(1)), IsOk());
    alone = TensorAt(server.address(), worker);
    EXPECT_THAT(worker.Left(), IsOk());
  }
  const uint32_t servers = GetParam();
  RunningServer first(FirstOptions(servers));
  std::vector<std::unique_ptr<RunningReplica>> replicas;
  for (uint32_t i = 1; i < servers; ++i) {
    replicas.push_back(std::make_unique<RunningReplica>(ReplicaOptions(i, servers)));
  }
  HandMadeWorker worker(first.address());
  ASSERT_THAT(worker.Offered(Pattern(1)), IsOk());
  EXPECT_EQ(TensorAt(first.address(), worker), alone);
  EXPECT_THAT(worker.Left(), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Servers, SeveralServersTest, ::testing::Values(2, 3, 4));

}  // namespace
}  // namespace sluice

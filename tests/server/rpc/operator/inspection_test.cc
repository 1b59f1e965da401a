// The Inspector as a person with grpcurl meets it: a client that has nothing but what reflection
// tells, and a server that holds 100 MB of parameters.

#include "tests/testing/server/inspection.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

// ---- What the server serves ----

class ReflectionTest : public ::testing::Test {
 protected:
  ReflectionTest() : world_(Sync(1)), client_(world_.address().ToString()) {}

  // "Method(Request) returns Answer", in the order of the file.
  std::vector<std::string> MethodsOf(const std::string& service) {
    const auto described = client_.Describe(service);
    EXPECT_THAT(described, IsOk());
    std::vector<std::string> methods;
    for (int i = 0; described.ok() && i < (*described)->method_count(); ++i) {
      const auto& method = *(*described)->method(i);
      methods.push_back(absl::StrCat(method.name(), "(", method.client_streaming() ? "stream " : "",
                                     method.input_type()->name(), ") returns ",
                                     method.server_streaming() ? "stream " : "",
                                     method.output_type()->name()));
    }
    return methods;
  }

  ServerWorld world_;
  ReflectionClient client_;
};

TEST_F(ReflectionTest, ListsTheServices) {
  const auto services = client_.ListServices();
  ASSERT_THAT(services, IsOk());
  EXPECT_THAT(*services, UnorderedElementsAre("sluice.v1.ParameterServer", "sluice.v1.Inspector",
                                              "sluice.v1.Admin", "grpc.health.v1.Health",
                                              "grpc.reflection.v1.ServerReflection",
                                              "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_F(ReflectionTest, DescribesTheParameterServer) {
  EXPECT_THAT(
      MethodsOf("sluice.v1.ParameterServer"),
      ElementsAre("Join(JoinRequest) returns stream JoinEvent",
                  "JoinInParts(stream JoinRequest) returns stream JoinEvent",
                  "Heartbeat(HeartbeatRequest) returns HeartbeatResponse",
                  "InitializeParams(stream InitializeParamsRequest) returns "
                  "InitializeParamsResponse",
                  "OfferConstants(stream OfferConstantsRequest) returns OfferConstantsResponse",
                  "PullConstants(PullConstantsRequest) returns stream PullConstantsResponse",
                  "PullState(PullStateRequest) returns stream PullStateResponse",
                  "OfferState(stream OfferStateRequest) returns OfferStateResponse",
                  "PushGradients(stream PushGradientsRequest) returns PushGradientsResponse",
                  "PullParams(PullParamsRequest) returns stream PullParamsResponse",
                  "PushPull(stream PushPullRequest) returns PushPullResponse",
                  "PullRows(PullRowsRequest) returns stream PullParamsResponse",
                  "PushLane(stream PushGradientsRequest) returns PushLaneResponse",
                  "PullLane(Lane) returns stream PullParamsResponse",
                  "Leave(LeaveRequest) returns LeaveResponse",
                  "HoldJob(HoldJobRequest) returns stream HoldJobResponse",
                  "PullSlots(PullSlotsRequest) returns stream PullSlotsResponse",
                  "AllGather(AllGatherRequest) returns AllGatherResponse"));
}

TEST_F(ReflectionTest, DescribesTheInspector) {
  EXPECT_THAT(MethodsOf("sluice.v1.Inspector"),
              ElementsAre("GetServerState(GetServerStateRequest) returns ServerState",
                          "ListWorkers(ListWorkersRequest) returns ListWorkersResponse",
                          "ListServers(ListServersRequest) returns ListServersResponse",
                          "ListParameters(ListParametersRequest) returns ListParametersResponse",
                          "GetParameter(GetParameterRequest) returns GetParameterResponse",
                          "ListTables(ListTablesRequest) returns ListTablesResponse",
                          "GetRow(GetRowRequest) returns GetRowResponse",
                          "WatchState(WatchStateRequest) returns stream ServerState",
                          "ListModels(ListModelsRequest) returns ListModelsResponse"));
}

TEST_F(ReflectionTest, DescribesTheAdmin) {
  EXPECT_THAT(MethodsOf("sluice.v1.Admin"),
              ElementsAre("SetPolicy(SetPolicyRequest) returns SetPolicyResponse",
                          "SetLearningRate(SetLearningRateRequest) returns SetLearningRateResponse",
                          "EvictWorker(EvictWorkerRequest) returns EvictWorkerResponse",
                          "SaveCheckpoint(SaveCheckpointRequest) returns SaveCheckpointResponse",
                          "Drain(DrainRequest) returns DrainResponse",
                          "ReadLogs(ReadLogsRequest) returns stream ReadLogsResponse",
                          "CollectTrace(CollectTraceRequest) returns stream CollectTraceResponse"));
}

TEST_F(ReflectionTest, DescribesEveryMessageOfEveryService) {
  const auto services = client_.ListServices();
  ASSERT_THAT(services, IsOk());
  std::set<std::string> seen;
  std::vector<const google::protobuf::Descriptor*> open;
  for (const std::string& service : *services) {
    const auto described = client_.Describe(service);
    ASSERT_THAT(described, IsOk()) << service;
    for (int i = 0; i < (*described)->method_count(); ++i) {
      open.push_back((*described)->method(i)->input_type());
      open.push_back((*described)->method(i)->output_type());
    }
  }
  while (!open.empty()) {
    const auto* const message = open.back();
    open.pop_back();
    if (!seen.insert(message->full_name()).second) continue;
    for (int i = 0; i < message->field_count(); ++i) {
      const auto* const field = message->field(i);
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      ASSERT_NE(field->message_type(), nullptr) << field->full_name();
      open.push_back(field->message_type());
    }
  }
  EXPECT_THAT(seen, IsSupersetOf(
                        {"sluice.v1.TensorChunk", "sluice.v1.TensorStatistics",
                         "sluice.v1.Consistency", "sluice.v1.PushCounters", "sluice.v1.LayoutRange",
                         "sluice.v1.StepState", "sluice.v1.AwaitedWorker", "sluice.v1.Staleness",
                         "sluice.v1.LearningRateSchedule", "google.protobuf.Duration",
                         "google.protobuf.Timestamp", "grpc.health.v1.HealthCheckResponse"}));
}

TEST_F(ReflectionTest, ChecksHealthUntilTheServerDrains) {
  const auto check = [this](const std::string& service) {
    const auto answer = client_.Call("grpc.health.v1.Health/Check",
                                     absl::StrCat(R"({"service": ")", service, R"("})"));
    return answer.ok() ? JsonAt(answer->json, "status") : answer.status().ToString();
  };
  EXPECT_EQ(check(""), "SERVING");
  EXPECT_EQ(check("sluice.v1.ParameterServer"), "SERVING");
  EXPECT_EQ(check("sluice.v1.Inspector"), "SERVING");
  EXPECT_THAT(check("sluice.v2.Inspector"), HasSubstr("NOT_FOUND: no service"));
  world_.shard().Drain();
  EXPECT_EQ(check(""), "NOT_SERVING");
  EXPECT_EQ(check("sluice.v1.ParameterServer"), "NOT_SERVING");
}

// ---- A large model ----

constexpr uint64_t kElements = 25'600'000;  // 102.4 MB
constexpr uint32_t kTensors = 400;
constexpr uint32_t kLargestTensor = 8'000'000;
constexpr char kLargestName[] = "layer.000.weight";

// As a deep network has them: one large tensor and hundreds of others.
Layout LargeLayout() {
  std::vector<Tensor> tensors;
  uint64_t left = kElements - kLargestTensor;
  for (uint32_t i = 0; i < kTensors; ++i) {
    const uint64_t rest = kTensors - i;
    const uint64_t size = i == 0 ? kLargestTensor : left / rest;
    if (i > 0) left -= size;
    tensors.push_back({absl::StrFormat("layer.%03d.weight", i), static_cast<uint32_t>(size)});
  }
  return LayoutOf(tensors);
}

float ElementAt(uint64_t index) { return static_cast<float>(index % 7) - 2; }

// Stages ElementAt() of the whole vector.
void StageLargeModel(PendingPush& vector) {
  for (uint64_t offset = 0; offset < kElements; offset += kChunkElements) {
    Values elements(std::min(kChunkElements, kElements - offset));
    for (uint64_t i = 0; i < elements.size(); ++i) elements[i] = ElementAt(offset + i);
    EXPECT_THAT(vector.Add(ChunkOf(offset, elements)), IsOk());
  }
}

// A server that holds 102.4 MB of parameters in 400 tensors.
class LargeModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    world_ = new ServerWorld(Async(1), LargeLayout());
    ASSERT_THAT(world_->Join("worker-0"), IsOk());
    const SessionId session(world_->session("worker-0"));
    auto start = world_->shard().store().BeginInitialize(session);
    ASSERT_THAT(start, IsOk());
    StageLargeModel(*start->parameters);
    ASSERT_THAT(FinishOffer(world_->shard(), std::move(start->parameters)), IsOk());
  }
  static void TearDownTestSuite() {
    delete world_;
    world_ = nullptr;
  }

  LargeModelTest() : client_(world_->address().ToString()) {}

  // Calls once to warm up and then nine times; tells the answer, and the median of the CPU time
  // that client and server took, which does not depend on what else the machine does.
  ReflectionClient::Answer Measure(const std::string& method, const std::string& request = "{}") {
    absl::StatusOr<ReflectionClient::Answer> answer = client_.Call(method, request);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      const std::clock_t start = std::clock();  // of the process
      answer = client_.Call(method, request);
      times.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    std::sort(times.begin(), times.end());
    EXPECT_THAT(answer, IsOk());
    EXPECT_LT(times[4], 0.1) << method;
    EXPECT_LT(answer->bytes, kLargestAnswer) << method;
    std::cout << absl::StrFormat("%s%s: median %.2f ms of CPU time, %d bytes\n%.500s\n", method,
                                 request, times[4] * 1e3, answer->bytes, answer->json);
    return *answer;
  }

  static ServerWorld* world_;
  ReflectionClient client_;
};

ServerWorld* LargeModelTest::world_ = nullptr;

TEST_F(LargeModelTest, ShowsItsStateAtOnce) {
  const std::string json = Measure("sluice.v1.Inspector/GetServerState").json;
  EXPECT_EQ(JsonAt(json, "jobId"), "job");
  EXPECT_EQ(JsonAt(json, "incarnation"), "1");
  EXPECT_EQ(JsonAt(json, "phase"), "TRAINING");
  EXPECT_EQ(JsonAt(json, "step"), "0");
  EXPECT_EQ(JsonAt(json, "consistency.mode"), "ASYNC");
  EXPECT_EQ(JsonAt(json, "optimizer.sgd.learningRate"), "1");
  EXPECT_EQ(JsonAt(json, "workers"), "1");
  EXPECT_EQ(JsonAt(json, "tensors"), "400");
  EXPECT_EQ(JsonAt(json, "elements"), "25600000");
  EXPECT_EQ(JsonAt(json, "bytesReceived"), "102400000");
}

TEST_F(LargeModelTest, ShowsItsWorkersAtOnce) {
  const std::string json = Measure("sluice.v1.Inspector/ListWorkers").json;
  EXPECT_EQ(JsonAt(json, "workers"), "[1]");
  EXPECT_EQ(JsonAt(json, "workers.0.worker"), "worker-0");
  EXPECT_EQ(JsonAt(json, "workers.0.presence"), "PRESENT");
}

TEST_F(LargeModelTest, ShowsAPageOfItsParametersAtOnce) {
  const std::string json = Measure("sluice.v1.Inspector/ListParameters").json;
  EXPECT_EQ(JsonAt(json, "total"), "400");
  EXPECT_EQ(JsonAt(json, "parameters"), "[100]");
  EXPECT_EQ(JsonAt(json, "parameters.0.name"), kLargestName);
  EXPECT_EQ(JsonAt(json, "parameters.0.shape.0"), "8e+06");
  EXPECT_EQ(JsonAt(json, "parameters.99.name"), "layer.099.weight");
}

TEST_F(LargeModelTest, ChecksHealthAtOnce) {
  EXPECT_EQ(JsonAt(Measure("grpc.health.v1.Health/Check").json, "status"), "SERVING");
}

TEST_F(LargeModelTest, ListsEveryParameterOnce) {
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < kTensors; ++i)
    expected.push_back(absl::StrFormat("layer.%03d.weight", i));
  EXPECT_EQ(NamesInPages(client_, "ListParameters", 100, "parameters", "name"), expected);
  EXPECT_EQ(NamesInPages(client_, "ListParameters", 37, "parameters", "name"), expected);
}

// Against the plainest computation, in two passes.
TEST_F(LargeModelTest, SummarizesItsLargestParameterAtOnce) {
  long double sum = 0, squares = 0, deviations = 0;
  uint64_t zeros = 0;
  for (uint64_t i = 0; i < kLargestTensor; ++i) {
    sum += ElementAt(i);
    squares += ElementAt(i) * ElementAt(i);
    zeros += ElementAt(i) == 0 ? 1 : 0;
  }
  const long double mean = sum / kLargestTensor;
  for (uint64_t i = 0; i < kLargestTensor; ++i) {
    deviations += (ElementAt(i) - mean) * (ElementAt(i) - mean);
  }
  const std::string json =
      Measure("sluice.v1.Inspector/GetParameter",
              absl::StrCat(R"({"name": ")", kLargestName, R"(", "count": 1024})"))
          .json;
  EXPECT_EQ(JsonAt(json, "statistics.min"), "-2");
  EXPECT_EQ(JsonAt(json, "statistics.max"), "4");
  EXPECT_NEAR(JsonNumberAt(json, "statistics.mean"), static_cast<double>(mean), 1e-9);
  EXPECT_NEAR(JsonNumberAt(json, "statistics.standardDeviation"),
              static_cast<double>(std::sqrt(deviations / kLargestTensor)), 1e-9);
  EXPECT_NEAR(JsonNumberAt(json, "statistics.l2Norm"), static_cast<double>(std::sqrt(squares)),
              1e-6);
  EXPECT_NEAR(JsonNumberAt(json, "statistics.zeroShare"),
              static_cast<double>(zeros) / kLargestTensor, 1e-12);
  EXPECT_EQ(JsonAt(json, "values"), "[1024]");
}

}  // namespace
}  // namespace sluice

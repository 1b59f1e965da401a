// What the Inspector shows, and the largest of its answers.

#include "server/rpc/operator/inspector.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/inspection.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

// ---- Warnings ----

TEST(GetServerStateTest, ShowsWhatTheServerWarnsOf) {
  ServerWorld world(Sync(2));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), IsOk());
  ASSERT_THAT(world.Push("b", 0, {1, 1, 1}), IsOk());
  EXPECT_EQ(JsonAt(Inspect(client, "GetServerState"), "warnings"), "[0]");
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  std::string json = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(json, "warnings"), "[1]");
  EXPECT_EQ(JsonAt(json, "warnings.0.kind"), "WORKERS_LOST");
  EXPECT_EQ(JsonAt(json, "warnings.0.since"), "1");
  EXPECT_EQ(JsonAt(json, "warnings.0.over"), "absent");
  EXPECT_THAT(JsonAt(json, "warnings.0.text"), HasSubstr("1 of 2 workers were evicted"));
  ASSERT_THAT(world.Push("a", 1, {1, 1, 1}), Applied(2));
  ASSERT_THAT(world.Join("b"), IsOk());
  EXPECT_EQ(JsonAt(Inspect(client, "GetServerState"), "warnings.0.over"), "2");
}

// ---- Measurements ----

TEST(GetServerStateTest, ShowsWhatWasMeasuredLast) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  EXPECT_EQ(JsonAt(Inspect(client, "GetServerState"), "measurement"), "absent");
  ASSERT_THAT(world.Report("a", 0, {{"test accuracy", 0.5}}), IsOk());
  ASSERT_THAT(world.Report("a", 0, {{"test accuracy", 0.75}, {"test loss", 1.5}}), IsOk());
  const std::string json = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(json, "measurement.step"), "0");
  EXPECT_EQ(JsonAt(json, "measurement.reports"), "2");
  EXPECT_EQ(JsonAt(json, "measurement.results.test accuracy"), "0.75");
  EXPECT_EQ(JsonAt(json, "measurement.results.test loss"), "1.5");
}

// ---- The optimizer ----

TEST(GetServerStateTest, ShowsTheOptimizersGroupsAndTheirFirstFewParameters) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 12; ++i) tensors.push_back({absl::StrCat("t", i)});
  ServerWorld world(Sync(1), LayoutOf(tensors));
  ReflectionClient client(world.address().ToString());
  v1::JoinRequest request = world.RequestOf("a");
  v1::OptimizerGroup& group = *request.mutable_optimizer()->add_groups();
  for (int i = 0; i < 10; ++i) group.add_parameters(absl::StrCat("t", i));
  group.mutable_options()->mutable_sgd()->set_learning_rate(0.25);
  ASSERT_THAT(world.JoinAs(request), IsOk());
  const std::string json = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(json, "optimizer.groups"), "[1]");
  EXPECT_EQ(JsonAt(json, "optimizer.groups.0.options.sgd.learningRate"), "0.25");
  EXPECT_EQ(JsonAt(json, "optimizer.groups.0.parameters"), "[8]");
  EXPECT_EQ(JsonAt(json, "optimizer.groups.0.parameters.7"), "t7");
  EXPECT_EQ(JsonAt(json, "optimizer.groups.0.size"), "10");
}

// ---- One parameter ----

// A server of a tensor "small" of 16 elements, one of 17 and a large one; element i is i.
class GetParameterTest : public ::testing::Test {
 protected:
  static constexpr char kMethod[] = "sluice.v1.Inspector/GetParameter";

  GetParameterTest()
      : world_(Async(1), LayoutOf({{"small", 16}, {"medium", 17}, {"large", 2000}})),
        client_(world_.address().ToString()) {
    EXPECT_THAT(world_.Join("a"), IsOk());
  }

  void Initialize() {
    Values values(2033);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    EXPECT_THAT(world_.Initialize("a", values), IsOk());
  }
  std::string Get(const std::string& request) { return Inspect(client_, "GetParameter", request); }
  absl::Status Refusal(const std::string& request) {
    return client_.Call(kMethod, request).status();
  }

  ServerWorld world_;
  ReflectionClient client_;
};

TEST_F(GetParameterTest, ShowsASmallTensorWhole) {
  Initialize();
  const std::string json = Get(R"({"name": "small"})");
  EXPECT_EQ(JsonAt(json, "values"), "[16]");
  EXPECT_EQ(JsonAt(json, "values.15"), "15");
  EXPECT_EQ(JsonAt(json, "step"), "0");
  EXPECT_EQ(JsonAt(json, "parameter.name"), "small");
  EXPECT_EQ(JsonAt(json, "parameter.kind"), "PARAMETER");
  EXPECT_EQ(JsonAt(json, "parameter.dtype"), "FLOAT32");
  EXPECT_EQ(JsonAt(json, "parameter.length"), "16");
}

TEST_F(GetParameterTest, ShowsOnlyStatisticsOfALargerOne) {
  Initialize();
  const std::string json = Get(R"({"name": "medium"})");
  EXPECT_EQ(JsonAt(json, "values"), "[0]");
  EXPECT_EQ(JsonAt(json, "statistics.min"), "16");
  EXPECT_EQ(JsonAt(json, "statistics.max"), "32");
  EXPECT_EQ(JsonAt(json, "statistics.mean"), "24");
  EXPECT_NEAR(JsonNumberAt(json, "statistics.standardDeviation"), std::sqrt(24.0), 1e-12);
}

TEST_F(GetParameterTest, ShowsThePartAskedFor) {
  Initialize();
  const std::string json = Get(R"({"name": "large", "first": 100, "count": 3})");
  EXPECT_EQ(JsonAt(json, "first"), "100");
  EXPECT_EQ(JsonAt(json, "values"), "[3]");
  EXPECT_EQ(JsonAt(json, "values.0"), "133");
  EXPECT_EQ(JsonAt(json, "values.2"), "135");
  EXPECT_EQ(JsonAt(json, "parameter.offset"), "33");
}

TEST_F(GetParameterTest, StopsAtTheTensorsEnd) {
  Initialize();
  const std::string json = Get(R"({"name": "large", "first": 1998, "count": 1024})");
  EXPECT_EQ(JsonAt(json, "values"), "[2]");
  EXPECT_EQ(JsonAt(json, "values.1"), "2032");
}

TEST_F(GetParameterTest, RefusesValuesOutOfRange) {
  Initialize();
  const auto refused = IsError(Reason::kBadArgument, HasSubstr("at most 2000, the tensor's size"));
  EXPECT_THAT(Refusal(R"({"name": "large", "first": 2001, "count": 1})"), refused);
  EXPECT_THAT(Refusal(R"({"name": "large", "first": "18446744073709551615", "count": 1})"),
              refused);
  EXPECT_THAT(Refusal(R"({"name": "large", "count": 1025})"), refused);
  EXPECT_THAT(Refusal(R"({"name": "large", "count": 4294967295})"),
              IsError(Reason::kBadArgument, HasSubstr("at most 1024")));
}

TEST_F(GetParameterTest, DoesNotKnowOtherNames) {
  Initialize();
  EXPECT_THAT(Refusal(R"({"name": "conv"})"),
              IsError(Reason::kNotFound,
                      HasSubstr("no parameter \"conv\"; ListParameters returns the names")));
  EXPECT_THAT(Refusal("{}"), IsError(Reason::kNotFound, HasSubstr("no parameter \"\"")));
}

TEST_F(GetParameterTest, TellsTheReasonWhateverTheName) {
  Initialize();
  std::string name = "x";  // so that the 64th byte is half a character
  for (int i = 0; i < 5000; ++i) name += "é";
  EXPECT_THAT(Refusal(absl::StrCat(R"({"name": ")", name, R"("})")),
              IsError(Reason::kNotFound, HasSubstr("no parameter \"x")));
}

TEST_F(GetParameterTest, HasNoValuesBeforeThereAreParameters) {
  EXPECT_THAT(Refusal(R"({"name": "small"})"),
              IsError(Reason::kNotInitialized, HasSubstr("no parameters yet")));
}

// ---- Workers, pages and the worst of answers ----

TEST(InspectorTest, ShowsAServerThatNobodyHasJoined) {
  ServerWorld world(Sync(3));
  ReflectionClient client(world.address().ToString());
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "phase"), "WAITING_FOR_WORKERS");
  EXPECT_EQ(JsonAt(state, "current.required"), "3");
  EXPECT_EQ(JsonAt(state, "current.waiting"), "absent");
  EXPECT_EQ(JsonAt(state, "elements"), "0");
  EXPECT_EQ(JsonAt(state, "learningRate"), "0");
  EXPECT_EQ(JsonAt(Inspect(client, "ListWorkers"), "workers"), "[0]");
  EXPECT_EQ(JsonAt(Inspect(client, "ListParameters"), "total"), "0");
}

TEST(InspectorTest, TellsWhoIsWaitedForAndHowThePushesEnded) {
  ServerWorld world(Sync(3));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b", "c"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  world.Pass(absl::Milliseconds(1500));
  EXPECT_THAT(world.Push("b", 0, {1, 1, 1}), Accepted(0));
  EXPECT_THAT(world.SendPush({}), IsError(Reason::kMissingHeader, _));
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "current.accumulated"), "1");
  EXPECT_EQ(JsonAt(state, "current.required"), "3");
  EXPECT_EQ(JsonAt(state, "current.missing"), "2");
  EXPECT_EQ(JsonAt(state, "current.awaited"), "[2]");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.worker"), "a");
  EXPECT_EQ(JsonAt(state, "current.awaited.1.worker"), "c");
  EXPECT_EQ(JsonAt(state, "current.contributed"), "[1]");
  EXPECT_EQ(JsonAt(state, "current.contributed.0"), "b");
  EXPECT_EQ(JsonAt(state, "pushes.received"), "2");
  EXPECT_EQ(JsonAt(state, "pushes.accepted"), "1");
  EXPECT_EQ(JsonAt(state, "pushes.rejected"), "1");
  EXPECT_EQ(JsonAt(state, "uptime"), "1.500s");
  EXPECT_EQ(JsonAt(state, "started"), "2023-11-14T22:13:20Z");
}

// How long the step waits, and for whom: "b" has sent a third of its second push, "c" is silent.
TEST(InspectorTest, TellsHowFarThoseAreWhoAreWaitedFor) {
  ServerWorld world(Sync(3));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b", "c"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  for (const char* name : {"a", "b"}) {
    EXPECT_THAT(world.Push(name, 0, {1, 1, 1}), Accepted(0));
  }
  EXPECT_THAT(world.Push("c", 0, {1, 1, 1}), Applied(1));
  world.Silence("c");
  world.Pass(absl::Seconds(1));
  EXPECT_THAT(world.Push("a", 1, {1, 1, 1}), Accepted(1));
  world.Pass(absl::Seconds(2));
  const auto push = world.OpenPush();
  push->Write(HeaderOf(world.NextHeader("b", 1)));
  push->Write(GradientOf(0, {1}));
  EXPECT_TRUE(world.Await([&] {
    const auto awaited = world.shard().Describe().current.awaited;
    return awaited.size() == 2 && awaited[0].bytes_arrived == 4;
  }));
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "current.waiting"), "2s");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.worker"), "b");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.bytesArrived"), "4");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.sinceLastSeen"), "0s");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.lag"), "1");
  EXPECT_EQ(JsonAt(state, "current.awaited.1.worker"), "c");
  EXPECT_EQ(JsonAt(state, "current.awaited.1.bytesArrived"), "0");
  EXPECT_EQ(JsonAt(state, "current.awaited.1.sinceLastSeen"), "3s");
  EXPECT_EQ(JsonAt(state, "current.awaited.1.lag"), "1");
  push->Write(GradientOf(1, {1, 1}));
  push->End();
  EXPECT_THAT(push->Answer(), IsOk());
}

TEST(InspectorTest, TellsHowStaleTheGradientsWereThatCounted) {
  ServerWorld world(Bounded(1, 40));
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  for (uint64_t step = 0; step < 35; ++step) {
    ASSERT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  EXPECT_THAT(world.Push("a", 34, {1, 1, 1}), Applied(36, 1));
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(37, 36));
  EXPECT_THAT(world.Push("a", 4, {1, 1, 1}), Applied(38, 33));
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "staleness.max"), "36");
  EXPECT_DOUBLE_EQ(JsonNumberAt(state, "staleness.mean"), (1 + 36 + 33) / 38.0);
  EXPECT_EQ(JsonAt(state, "staleness.histogram"), "[3]");
  const char* const expected[][2] = {{"0", "35"}, {"1", "1"}, {"32", "2"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(JsonAt(state, PathOf("staleness.histogram", i, "staleness")), expected[i][0]);
    EXPECT_EQ(JsonAt(state, PathOf("staleness.histogram", i, "count")), expected[i][1]);
  }
}

TEST(InspectorTest, TellsTheLearningRateAndHowItGoes) {
  ShardOptions options = Sync(1);
  options.schedule.kind = ScheduleKind::kStep;
  options.schedule.warmup_steps = 2;
  options.schedule.step_size = 10;
  options.schedule.gamma = 0.5;
  ServerWorld world(options);
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "learningRate"), "0.5");
  EXPECT_EQ(JsonAt(state, "schedule.kind"), "STEP");
  EXPECT_EQ(JsonAt(state, "schedule.warmupSteps"), "2");
  EXPECT_EQ(JsonAt(state, "schedule.stepSize"), "10");
  EXPECT_EQ(JsonAt(state, "schedule.gamma"), "0.5");
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "learningRate"), "1");
}

TEST(InspectorTest, TellsWhatWasSkipped) {
  ShardOptions options = Sync(2);
  options.guards.skip_not_finite = true;
  ServerWorld world(options);
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  EXPECT_THAT(world.Push("a", 0, {1, std::nanf(""), 1}), Skipped(0));
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "pushes.skipped"), "1");
  EXPECT_EQ(JsonAt(state, "current.skipped"), "1");
  EXPECT_EQ(JsonAt(Inspect(client, "ListWorkers"), "workers.0.skipped"), "1");
}

TEST(InspectorTest, TellsTheTimesOfSteps) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  for (uint64_t step = 0; step < 2; ++step) {
    world.Pass(absl::Seconds(3));
    EXPECT_THAT(world.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  world.Pass(absl::Seconds(1));
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(JsonAt(state, "step"), "2");
  EXPECT_EQ(JsonAt(state, "meanStepTime"), "3s");
  EXPECT_EQ(JsonAt(state, "sinceLastStep"), "1s");
}

TEST(InspectorTest, TellsWhatBecameOfEachWorker) {
  ServerWorld world(Async(1));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"evicted", "left", "lost", "present"}) {
    ASSERT_THAT(world.Join(name), IsOk());
  }
  ASSERT_THAT(world.Observe("observer"), IsOk());
  ASSERT_THAT(world.Initialize("present", {1, 2, 3}), IsOk());
  EXPECT_TRUE(world.Break("evicted"));
  world.Pass(absl::Seconds(10));
  EXPECT_TRUE(world.Break("lost"));
  ASSERT_THAT(world.Leave("left"), IsOk());
  v1::PushHeader header = world.NextHeader("present", 0);
  header.set_loss(0.5);
  ASSERT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, 1, 1})}), Applied(1));
  world.Pass(absl::Seconds(2));
  const std::string json = Inspect(client, "ListWorkers");
  EXPECT_EQ(JsonAt(json, "workers"), "[4]");
  const char* const presences[] = {"EVICTED", "LEFT", "LOST", "PRESENT"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(JsonAt(json, PathOf("workers", i, "presence")), presences[i]);
  }
  EXPECT_EQ(JsonAt(json, "workers.3.worker"), "present");
  EXPECT_EQ(JsonAt(json, "workers.3.host"), "node");
  EXPECT_EQ(JsonAt(json, "workers.3.pid"), "7");
  EXPECT_EQ(JsonAt(json, "workers.3.lag"), "1");
  EXPECT_EQ(JsonAt(json, "workers.3.accepted"), "1");
  EXPECT_EQ(JsonAt(json, "workers.3.lastSequence"), "1");
  EXPECT_EQ(JsonAt(json, "workers.3.loss"), "0.5");
  EXPECT_EQ(JsonAt(json, "workers.3.sinceLastPush"), "2s");
  EXPECT_EQ(JsonAt(json, "workers.3.sinceLastSeen"), "0s");
  EXPECT_EQ(JsonAt(json, "workers.3.index"), "3");
  EXPECT_EQ(JsonAt(json, "workers.2.sinceLastSeen"), "2s");
  EXPECT_EQ(JsonAt(json, "workers.2.sinceLastPush"), "absent");
}

TEST(InspectorTest, TellsTheEncodingsThatAWorkerNamed) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  v1::JoinRequest request = world.RequestOf("a");
  request.set_push_encoding("top-k:0.01");
  request.set_pull_encoding("bfloat16");
  ASSERT_THAT(world.JoinAs(request), IsOk());
  const std::string json = Inspect(client, "ListWorkers");
  EXPECT_EQ(JsonAt(json, "workers.0.pushEncoding"), "top-k:0.01");
  EXPECT_EQ(JsonAt(json, "workers.0.pullEncoding"), "bfloat16");
}

TEST(InspectorTest, TellsTheVersionThatAWorkerNamed) {
  ServerWorld world(Sync(2));
  ReflectionClient client(world.address().ToString());
  v1::JoinRequest request = world.RequestOf("a");
  request.set_version("0.2.0-rc1");
  ASSERT_THAT(world.JoinAs(request), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  const std::string json = Inspect(client, "ListWorkers");
  EXPECT_EQ(JsonAt(json, "workers.0.version"), "0.2.0-rc1");
  EXPECT_EQ(JsonAt(json, "workers.1.version"), "");
}

TEST(InspectorTest, RefusesAPageTokenThatItNeverGave) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  for (const char* method : {"ListWorkers", "ListParameters"}) {
    for (const char* token : {"next", "-1", "2", "18446744073709551616", "éééééééééééééééééé"}) {
      const auto answer = client.Call(absl::StrCat("sluice.v1.Inspector/", method),
                                      absl::StrCat(R"({"pageToken": ")", token, R"("})"));
      EXPECT_THAT(answer.status(),
                  IsError(Reason::kBadArgument, HasSubstr("does not come from this server")))
          << method << " " << token;
    }
  }
}

// The worst that a layout may hold, on one page.
TEST(InspectorTest, KeepsALargestPageOfParametersUnderItsLimit) {
  std::vector<LayoutRange> ranges;
  for (uint32_t i = 0; i < 101; ++i) {
    LayoutRange range;
    range.name = absl::StrFormat("%0256d", i);
    range.shape = {1, 1, 1, 1, 1, 1, 1, 128};
    range.kind = RangeKind::kStatistic;
    range.dtype = DataType::kBFloat16;
    range.offset = 128 * i;
    range.length = 128;
    ranges.push_back(range);
  }
  ServerWorld world(Sync(1), Layout::Create(ranges).value());
  ReflectionClient client(world.address().ToString());
  ASSERT_THAT(world.Join("a"), IsOk());
  const auto page =
      client.Call("sluice.v1.Inspector/ListParameters", R"({"pageSize": 4294967295})");
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(JsonAt(page->json, "parameters"), "[100]");
  EXPECT_EQ(JsonAt(page->json, "nextPageToken"), "100");
  EXPECT_LT(page->bytes, kLargestAnswer);
}

TEST(InspectorTest, PagesOfWorkersGoOnWhereTheyEnded) {
  ServerWorld world(Sync(5));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"b", "d", "f"}) ASSERT_THAT(world.Join(name), IsOk());
  const std::string first = Inspect(client, "ListWorkers", R"({"pageSize": 2})");
  EXPECT_EQ(JsonAt(first, "workers.1.worker"), "d");
  EXPECT_EQ(JsonAt(first, "nextPageToken"), "after:d");
  // Workers that join before and after the place do not move the others.
  for (const char* name : {"a", "c", "e"}) ASSERT_THAT(world.Join(name), IsOk());
  const std::string second =
      Inspect(client, "ListWorkers", R"({"pageSize": 2, "pageToken": "after:d"})");
  EXPECT_EQ(JsonAt(second, "workers.0.worker"), "e");
  EXPECT_EQ(JsonAt(second, "workers.1.worker"), "f");
  EXPECT_EQ(JsonAt(second, "nextPageToken"), "");
}

// The worst that a worker may report, on pages that are as large as they may be.
TEST(InspectorTest, EndsAPageOfWorkersBeforeItIsTooLarge) {
  constexpr int kWorkers = 101;
  ServerWorld world(Async(1000));
  ReflectionClient client(world.address().ToString());
  for (int i = 0; i < kWorkers; ++i) {
    v1::JoinRequest request = world.RequestOf(absl::StrFormat("%0128d", i));
    request.set_host(std::string(256, 'h'));
    request.set_push_encoding(std::string(64, 'e'));
    request.set_pull_encoding(std::string(64, 'e'));
    ASSERT_THAT(world.JoinAs(request), IsOk());
    if (i == 0) {
      ASSERT_THAT(world.Initialize(request.worker(), {1, 2, 3}), IsOk());
    }
    v1::PushHeader header = world.NextHeader(request.worker(), 0);
    for (int k = 0; k < 8; ++k) header.add_attachments()->set_type(std::string(64, 't'));
    ASSERT_THAT(world.SendPush({HeaderOf(header), GradientOf(0, {1, 1, 1})}), Accepted(0));
  }
  const auto page = client.Call("sluice.v1.Inspector/ListWorkers");
  ASSERT_THAT(page, IsOk());
  EXPECT_LT(page->bytes, kLargestAnswer);
  EXPECT_GT(page->bytes, kLargestAnswer * 9 / 10);
  EXPECT_EQ(NamesInPages(client, "ListWorkers", 100, "workers", "worker").size(), kWorkers);
}

TEST(InspectorTest, KeepsALargestPageOfWorkersUnderItsLimit) {
  ServerWorld world(Sync(101));
  ReflectionClient client(world.address().ToString());
  for (int i = 0; i < 101; ++i) {
    v1::JoinRequest request = world.RequestOf(absl::StrFormat("%0128d", i));
    request.set_host(std::string(256, 'h'));
    request.set_push_encoding(std::string(64, 'e'));
    request.set_pull_encoding(std::string(64, 'e'));
    request.set_pid(4294967295u);
    request.set_process_nonce(i + 1);
    ASSERT_THAT(world.JoinAs(request), IsOk());
  }
  const auto page = client.Call("sluice.v1.Inspector/ListWorkers");
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(JsonAt(page->json, "workers"), "[100]");
  EXPECT_LT(page->bytes, kLargestAnswer);
  EXPECT_EQ(NamesInPages(client, "ListWorkers", 10, "workers", "worker").size(), 101u);
  const auto state = client.Call("sluice.v1.Inspector/GetServerState");
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(JsonAt(state->json, "current.missing"), "101");
  EXPECT_EQ(JsonAt(state->json, "current.awaited"), "[16]");
  EXPECT_LT(state->bytes, kLargestAnswer);
}

}  // namespace
}  // namespace sluice

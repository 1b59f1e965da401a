#include "server/rpc/operator/watch.h"

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/recovery.h"
#include "server/durable/save_checkpoint.h"
#include "server/rpc/server.h"
#include "tests/testing/json.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;

// A watch of a server that one worker trains.
class GrpcWatchTest : public ::testing::Test {
 protected:
  GrpcWatchTest() : world_(Sync(1)), client_(world_.address().ToString()) {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {1, 2, 3}), IsOk());
  }

  ReflectionClient::Stream Watch() {
    auto stream = client_.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "0.1s"})");
    EXPECT_THAT(stream, IsOk());
    return *std::move(stream);
  }
  static std::string StepIn(const absl::optional<std::string>& json) {
    return json.has_value() ? JsonAt(*json, "step") : "end";
  }

  ServerWorld world_;
  ReflectionClient client_;
};

TEST_F(GrpcWatchTest, TellsTheStateNowAndWheneverTheStepHasGrown) {
  ReflectionClient::Stream watch = Watch();
  EXPECT_EQ(StepIn(watch.Next()), "0");
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(StepIn(watch.Next()), "1");
  EXPECT_THAT(world_.Push("a", 1, {1, 1, 1}), Applied(2));
  EXPECT_EQ(StepIn(watch.Next()), "2");
}

TEST_F(GrpcWatchTest, TellsOfAMeasurement) {
  ReflectionClient::Stream watch = Watch();
  EXPECT_EQ(StepIn(watch.Next()), "0");
  EXPECT_THAT(world_.Report("a", 0, {{"test accuracy", 0.5}}), IsOk());
  EXPECT_EQ(JsonAt(watch.Next().value_or("{}"), "measurement.reports"), "1");
}

// A watch of a server that two workers train.
TEST(GrpcWatchAwaitedTest, TellsWhoIsWaitedForWheneverThatChangesThoughTheStepDoesNot) {
  ServerWorld world(Sync(2));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  auto watch = client.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "0.1s"})");
  ASSERT_THAT(watch, IsOk());
  const auto next = [&watch] { return watch->Next().value_or("{}"); };
  EXPECT_EQ(JsonAt(next(), "current.awaited"), "[2]");
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Accepted(0));
  std::string state = next();
  EXPECT_EQ(JsonAt(state, "current.awaited"), "[1]");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.worker"), "b");
  EXPECT_EQ(JsonAt(state, "step"), "0");
  // Another takes its place: who is missing is all that changes.
  ASSERT_THAT(world.Join("c"), IsOk());
  state = next();
  EXPECT_EQ(JsonAt(state, "workers"), "3");
  EXPECT_EQ(JsonAt(state, "step"), "0");
  EXPECT_EQ(JsonAt(state, "current.awaited"), "[1]");
}

// In ssp those that wait are told apart from those they wait for, while steps stand still.
TEST(GrpcWatchAwaitedTest, TellsWhomAWorkerWaitsForInSsp) {
  ServerWorld world(Ssp(/*slack=*/0, 2));
  ReflectionClient client(world.address().ToString());
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  auto watch = client.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "0.1s"})");
  ASSERT_THAT(watch, IsOk());
  EXPECT_EQ(JsonAt(watch->Next().value_or("{}"), "current.awaited"), "[0]");
  std::thread waiting([&] { EXPECT_THAT(world.GoOn("a"), IsOk()); });
  const std::string state = watch->Next().value_or("{}");
  EXPECT_EQ(JsonAt(state, "step"), "1");
  EXPECT_EQ(JsonAt(state, "current.missing"), "1");
  EXPECT_EQ(JsonAt(state, "current.awaited.0.worker"), "b");
  EXPECT_THAT(world.Push("b", 0, {1, 1, 1}), Applied(2, 1));
  waiting.join();
}

TEST_F(GrpcWatchTest, EndsWithOkWhenTheServerEndsAndTellsTheLastChangeFirst) {
  auto watch = client_.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "1000s"})");
  ASSERT_THAT(watch, IsOk());
  EXPECT_EQ(StepIn(watch->Next()), "0");
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_TRUE(world_.Break("a"));  // its stream would keep the server up
  world_.shard().Drain();
  std::thread stopping([this] { world_.Stop(absl::InfiniteDuration()); });
  const std::string last = watch->Next().value_or("{}");
  EXPECT_EQ(JsonAt(last, "step"), "1");
  EXPECT_EQ(JsonAt(last, "phase"), "DRAINING");
  EXPECT_FALSE(watch->Next().has_value());
  EXPECT_THAT(watch->Finish(), IsOk());
  stopping.join();
}

TEST(GrpcWatchEndTest, EndsWithOkThoughNothingHasChanged) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  auto watch = client.Open("sluice.v1.Inspector/WatchState");
  ASSERT_THAT(watch, IsOk());
  ASSERT_TRUE(watch->Next().has_value());
  std::thread stopping([&world] { world.Stop(absl::InfiniteDuration()); });
  EXPECT_FALSE(watch->Next().has_value());
  EXPECT_THAT(watch->Finish(), IsOk());
  stopping.join();
}

TEST(GrpcWatchSavedTest, TellsANewCheckpoint) {
  ShardWorld world(Sync(1));
  DurableOptions options;
  options.directory = absl::StrCat(::testing::TempDir(), "/watched");
  const auto durable = DurableDirectory::Open(options);
  ASSERT_THAT(durable, IsOk());
  ASSERT_THAT(Recover(**durable, world.shard()), IsOk());
  GrpcServerOptions server;
  server.address.host = "127.0.0.1";
  const auto door = *StartGrpcServer(server, {&world.shard(), durable->get()});
  world.Start({"a"});
  ASSERT_THAT(SaveCheckpointAndWait(world.shard(), **durable), IsOk());
  ReflectionClient client(door->address().ToString());
  auto watch = client.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "0.1s"})");
  ASSERT_THAT(watch, IsOk());
  const auto saved = [&watch] {
    return JsonAt(watch->Next().value_or("{}"), "lastCheckpoint.step");
  };
  EXPECT_EQ(saved(), "0");
  EXPECT_THAT(world.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(saved(), "0");  // the step alone
  ASSERT_THAT(SaveCheckpointAndWait(world.shard(), **durable), IsOk());
  EXPECT_EQ(saved(), "1");
  watch->Cancel();
  door->Shutdown(absl::ZeroDuration());
}

TEST_F(GrpcWatchTest, TakesANegativeIntervalForTheShortest) {
  auto watch = client_.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "-5s"})");
  ASSERT_THAT(watch, IsOk());
  EXPECT_EQ(StepIn(watch->Next()), "0");
  EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_EQ(StepIn(watch->Next()), "1");
}

TEST(GrpcWatchEndTest, EndsWithItsCaller) {
  ServerWorld world(Sync(1));
  ReflectionClient client(world.address().ToString());
  auto watch = client.Open("sluice.v1.Inspector/WatchState", R"({"minInterval": "315576000000s"})");
  ASSERT_THAT(watch, IsOk());
  ASSERT_TRUE(watch->Next().has_value());
  watch->Cancel();
  EXPECT_FALSE(watch->Next().has_value());
  EXPECT_THAT(watch->Finish(), HasCode(absl::StatusCode::kCancelled, _));
  world.Stop(absl::InfiniteDuration());  // returns when the call has ended
}

}  // namespace
}  // namespace sluice

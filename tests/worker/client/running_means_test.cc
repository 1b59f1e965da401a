// Running means of stale pushes, from a client to a server and back.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;

Layout WithMean() { return LayoutOf({{"w", 1}, {"mean", 1, RangeKind::kStatistic}}); }

// A worker whose model has a parameter and a running mean.
struct MeanWorker {
  MeanWorker(ShardWorld& world, const std::string& worker_name)
      : name(worker_name), client(std::make_unique<ShardConnection>(world.shard())) {}

  absl::Status Join(RunningMeans elements = {{1, 2, 0}}) {
    client.KeepRunningMeans(std::move(elements));
    JoinRequest request = WorkerRequest(name);
    request.layout = WithMean();
    return client.Join(request, absl::MakeSpan(parameters));
  }
  // Pushes what `batches` batches have made of the mean, each of which has `value`.
  absl::Status Train(float value, int batches = 1) {
    float decay = 1;
    for (int i = 0; i < batches; ++i) {
      parameters[1] = 0.9f * parameters[1] + 0.1f * value;
      decay *= 0.9f;
    }
    Values gradient = {0, parameters[1]};
    client.SetRunningMeans({{1, 2, decay}}, absl::MakeSpan(gradient));
    return client.PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(parameters)).status();
  }

  const std::string name;
  ParameterClient client;
  Values parameters = {0, 10};
};

// Eight workers pull the same mean, and each pushes a batch. A process that sees all batches one
// after the other has 0.9 of its mean left after each.
TEST(ClientRunningMeansTest, FollowTheBatchesOfAllStaleWorkers) {
  ShardWorld world(Async(1), WithMean());
  std::vector<std::unique_ptr<MeanWorker>> workers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(std::make_unique<MeanWorker>(world, "worker" + std::to_string(i)));
    ASSERT_THAT(workers.back()->Join(), IsOk());
  }
  double one = 10;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 8; ++i) {
      const float value = static_cast<float>(20 * round + i);
      ASSERT_THAT(workers[i]->Train(value, 1 + i % 2), IsOk());
      for (int batch = 0; batch <= i % 2; ++batch) one = 0.9 * one + 0.1 * value;
      EXPECT_NEAR(workers[i]->parameters[1], one, 1e-3 * one);
    }
  }
}

TEST(ClientRunningMeansTest, AreValuesInSync) {
  ShardWorld world(Sync(1), WithMean());
  MeanWorker worker(world, "a");
  ASSERT_THAT(worker.Join(), IsOk());
  ASSERT_THAT(worker.Train(30), IsOk());
  EXPECT_EQ(worker.parameters[1], 0.9f * 10 + 0.1f * 30);
}

// Three times a third is not one: a mean of equal values may round. What is left whole does not,
// nor does a zero lose its sign.
TEST(ClientRunningMeansTest, WhatNoBatchHasChangedKeepsItsBits) {
  for (const auto& mode : {Sync(3), Async(1)}) {
    for (const float value : {std::numeric_limits<float>::lowest(), -0.0F}) {
      ShardWorld world(mode, WithMean());
      std::vector<std::unique_ptr<MeanWorker>> workers;
      for (int i = 0; i < 3; ++i) {
        workers.push_back(std::make_unique<MeanWorker>(world, "worker" + std::to_string(i)));
        workers[i]->parameters[1] = value;
        ASSERT_THAT(workers[i]->Join({{1, 2, 0}}), IsOk());
      }
      const auto push = [](MeanWorker& worker, float seen) {
        Values gradient = {0, seen};
        worker.client.SetRunningMeans({{1, 2, 1}}, absl::MakeSpan(gradient));
        return worker.client
            .PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(worker.parameters))
            .status();
      };
      std::vector<std::thread> threads;
      for (auto& worker : workers) {
        threads.emplace_back([&] { EXPECT_THAT(push(*worker, value), IsOk()); });
      }
      for (std::thread& thread : threads) thread.join();
      for (auto& worker : workers) {
        EXPECT_EQ(worker->parameters[1], value);
        EXPECT_EQ(std::signbit(worker->parameters[1]), std::signbit(value));
      }
    }
  }
}

TEST(ClientRunningMeansTest, AValueThatWasSetByHandIsPushedInSync) {
  ShardWorld world(Sync(1), WithMean());
  MeanWorker worker(world, "a");
  ASSERT_THAT(worker.Join(), IsOk());
  ASSERT_THAT(worker.Train(30, 0), IsOk());
  EXPECT_EQ(worker.parameters[1], 10);
  worker.parameters[1] = 7;
  ASSERT_THAT(worker.Train(30, 0), IsOk());
  EXPECT_EQ(worker.parameters[1], 7);
}

TEST(ClientRunningMeansTest, AreOfOnePush) {
  ShardWorld world(Async(1), WithMean());
  MeanWorker worker(world, "a");
  ASSERT_THAT(worker.Join(), IsOk());
  ASSERT_THAT(worker.Train(30), IsOk());
  ASSERT_THAT(
      worker.client.PushPull(Share({0, 4}), 1, absl::nullopt, absl::MakeSpan(worker.parameters))
          .status(),
      IsOk());
  EXPECT_EQ(worker.parameters[1], 4);  // a value
}

TEST(ClientRunningMeansTest, AreRefusedInParameters) {
  ShardWorld world(Async(1), WithMean());
  MeanWorker worker(world, "a");
  EXPECT_THAT(worker.Join({{0, 2, 0}}),
              IsError(Reason::kBadArgument, HasSubstr("have elements of \"w\"")));
}

}  // namespace
}  // namespace sluice

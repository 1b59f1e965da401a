// What workers of a job with several servers may do besides pushing gradients: attachments, weights
// by samples, parameters in place of gradients, and observers.

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/striped_job.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"
#include "worker/client/parameter_follower.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kElements = 1000;
constexpr uint32_t kServers = 3;

// A worker whose parameters are zeros at first.
class Worker {
 public:
  Worker(const StripedJob& job, const std::string& name, GradientEncoding encoding = {})
      : client_(ConnectTo(job.address()), std::move(encoding)) {
    EXPECT_THAT(client_.Join(WorkerRequest(name, kElements), absl::MakeSpan(parameters_)), IsOk());
  }
  ~Worker() { EXPECT_THAT(client_.Leave({}), IsOk()); }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Pushes a gradient of one value. A part of it may leave early.
  void Push(float value, uint32_t samples, uint64_t early = 0) {
    const SharedFloats gradient = Share(Values(kElements, value));
    if (early > 0) client_.SendEarly(0, gradient.Part(0, early));
    EXPECT_THAT(client_.PushPull(gradient, samples, 0.5F, absl::MakeSpan(parameters_)), IsOk());
  }

  // Pushes the parameters' own memory, as local steps do.
  void PushOwn() {
    const SharedFloats own = {parameters_, std::make_shared<int>()};
    EXPECT_THAT(client_.PushPull(own, 1, 0.5F, absl::MakeSpan(parameters_)), IsOk());
  }

  ParameterClient& client() { return client_; }
  const Values& parameters() const { return parameters_; }

 private:
  ParameterClient client_;
  Values parameters_ = Values(kElements);
};

GradientEncoding Int8() {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice("int8");
  return encoding;
}

TEST(SeveralServersRoundsTest, AttachmentsComeOnceToTheFirstServersHook) {
  absl::Mutex mu;
  std::vector<std::string> told;
  ShardOptions options = Sync(1);
  options.on_attachments = [&](const std::string& worker, Step step, const Attachments& all) {
    absl::MutexLock lock(&mu);
    for (const Attachment& each : all) {
      told.push_back(absl::StrCat(worker, " at ", step.value(), ": ", each.type, "=", each.data));
    }
  };
  StripedJob job(options, kServers);
  {
    Worker worker(job, "a", Int8());
    for (const char* data : {"1", "2"}) {
      EXPECT_THAT(worker.client().Attach({"acme.Batch", data}), IsOk());
      worker.Push(1, 1, data[0] == '2' ? 500 : 0);
    }
  }
  EXPECT_TRUE(job.EndsWell());
  EXPECT_THAT(told, ElementsAre("a at 0: acme.Batch=1", "a at 1: acme.Batch=2"));
}

// (1 · 4 + 3 · 8) / 4 is 7. The samples of a gradient that leaves early come after it.
TEST(SeveralServersRoundsTest, SamplesWeighGradientsOnAllServers) {
  ShardOptions options = Sync(2);
  options.consistency.reduction = Reduction::kWeightedMean;
  for (const uint64_t early : {0, 700}) {
    StripedJob job(options, kServers);
    {
      Worker one(job, "a");
      Worker other(job, "b", Int8());
      std::thread pushes([&] { one.Push(4, 1, early); });
      other.Push(8, 3, early);
      pushes.join();
      EXPECT_EQ(one.parameters(), Values(kElements, -7));
      EXPECT_EQ(other.parameters(), Values(kElements, -7));
    }
    EXPECT_TRUE(job.EndsWell());
  }
}

TEST(SeveralServersRoundsTest, APushMayLieWhereItsPullIsWritten) {
  for (const bool encoded : {false, true}) {
    StripedJob job(Sync(1), kServers);
    {
      Worker worker(job, "a", encoded ? Int8() : GradientEncoding());
      worker.Push(-8, 1);
      EXPECT_EQ(worker.parameters(), Values(kElements, 8));
      worker.PushOwn();
      EXPECT_EQ(worker.parameters(), Values(kElements, 0));
    }
    EXPECT_TRUE(job.EndsWell());
  }
}

TEST(SeveralServersRoundsTest, AnObserverSeesStepsOfEncodedGradients) {
  StripedJob job(Sync(1), kServers);
  {
    Worker worker(job, "a", Int8());
    ParameterFollower follower(ConnectTo(job.address()), ObserverRequest("observer", kElements),
                               absl::Seconds(10));
    Values followed(kElements);
    EXPECT_THAT(follower.Next(1, absl::MakeSpan(followed)), IsOk());
    worker.Push(2, 1);
    EXPECT_THAT(follower.Next(1, absl::MakeSpan(followed)), IsOk());
    EXPECT_EQ(followed, Values(kElements, -2));
  }
  EXPECT_TRUE(job.EndsWell());
}

}  // namespace
}  // namespace sluice

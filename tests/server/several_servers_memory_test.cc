// Workers on the node of several servers: their tensors lie in shared memory.

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/striped_job.h"
#include "tests/testing/json.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/inspection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

constexpr uint32_t kServers = 3;
constexpr uint32_t kElements = 2'100'000;  // a stripe's pieces have 4096
constexpr uint64_t kRounds = 4;

ShardOptions Sharing(ShardOptions options) {
  options.snapshots = SnapshotMemory::kShared;
  return options;
}

// A worker whose gradients lie in memory that it shares. Its parameters are zeros at first.
class Worker {
 public:
  Worker(const StripedJob& job, const std::string& name)
      : memory_(*SharedMemory::Create(kElements)), client_(ConnectTo(job.address()), {}) {
    JoinRequest request = WorkerRequest(name, kElements);
    request.memory = memory_;
    EXPECT_THAT(client_.Join(request, absl::MakeSpan(parameters_)), IsOk());
  }
  ~Worker() { EXPECT_THAT(client_.Leave({}), IsOk()); }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Element i of the gradient is i + `more`. The memory is written again at once.
  void Push(float more) {
    float i = 0;
    for (float& value : memory_->floats()) value = i++ + more;
    EXPECT_THAT(
        client_.PushPull({memory_->floats(), memory_}, 1, 0.5F, absl::MakeSpan(parameters_)),
        IsOk());
    std::fill(memory_->floats().begin(), memory_->floats().end(), -1.0F);
  }

  const Values& parameters() const { return parameters_; }

 private:
  const std::shared_ptr<SharedMemory> memory_;
  ParameterClient client_;
  Values parameters_ = Values(kElements);
};

// All parameters after `rounds` gradients of `more`.
Values After(uint64_t rounds, float more) {
  Values values(kElements);
  for (uint64_t round = 0; round < rounds; ++round) {
    float i = 0;
    for (float& value : values) value -= i++ + more;
  }
  return values;
}

// The bytes that a server has received and sent when it has made `step`.
uint64_t WireBytes(ReflectionClient& client, uint32_t server, uint64_t step) {
  const auto field = [&](const std::string& servers, const std::string& name) {
    return JsonAt(servers, PathOf("servers", static_cast<int>(server), name));
  };
  std::string servers;
  do {
    servers = Inspect(client, "ListServers");
  } while (field(servers, "step") != absl::StrCat(step));
  uint64_t received = 0;
  uint64_t sent = 0;
  EXPECT_TRUE(absl::SimpleAtoi(field(servers, "wireBytesReceived"), &received));
  EXPECT_TRUE(absl::SimpleAtoi(field(servers, "wireBytesSent"), &sent));
  return received + sent;
}

TEST(SeveralServersMemoryTest, GradientsAndParametersOfItsNodeCrossNoSocket) {
  StripedJob job(Sharing(Sync(1)), kServers);
  {
    Worker worker(job, "a");
    for (uint64_t round = 1; round <= kRounds; ++round) {
      worker.Push(0.25F);
      EXPECT_TRUE(worker.parameters() == After(round, 0.25F)) << round;
    }
    // The offer, and the first answer to a pull, are a stripe each. A round would be two.
    constexpr uint64_t kStripe = kElements * sizeof(float) / kServers;
    ReflectionClient client(job.address());
    for (uint32_t server = 0; server < kServers; ++server) {
      EXPECT_LT(WireBytes(client, server, kRounds), 5 * kStripe / 2) << server;
    }
  }
  EXPECT_TRUE(job.EndsWell());
}

// A push that does not complete a step is answered before the other servers have added it.
TEST(SeveralServersMemoryTest, AWorkerMayWriteItsMemoryOnceItsPushIsAnswered) {
  StripedJob job(Sharing(Async(3)), kServers);
  {
    Worker worker(job, "a");
    for (int push = 0; push < 6; ++push) worker.Push(0.5F);
    Values mean(kElements);
    float i = 0;
    for (float& value : mean) value = -2 * (i++ + 0.5F);
    EXPECT_TRUE(worker.parameters() == mean);
  }
  EXPECT_TRUE(job.EndsWell());
}

}  // namespace
}  // namespace sluice

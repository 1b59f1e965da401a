#include "server/rpc/operator/health.h"

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/server/reflection_client.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

class HealthWatchTest : public ::testing::Test {
 protected:
  HealthWatchTest() : world_(Sync(1)), client_(world_.address().ToString()) {}

  ReflectionClient::Stream Watch(const std::string& service) {
    auto stream =
        client_.Open("grpc.health.v1.Health/Watch", R"({"service": ")" + service + R"("})");
    EXPECT_THAT(stream, IsOk());
    return *std::move(stream);
  }
  static std::string StatusIn(const absl::optional<std::string>& json) {
    return json.has_value() ? JsonAt(*json, "status") : "end";
  }

  ServerWorld world_;
  ReflectionClient client_;
};

TEST_F(HealthWatchTest, TellsTheHealthNowWhenItChangesAndEndsWithOk) {
  for (const char* service : {"", "sluice.v1.Inspector"}) {
    ReflectionClient::Stream watch = Watch(service);
    EXPECT_EQ(StatusIn(watch.Next()), "SERVING");
    watch.Cancel();
  }
  ReflectionClient::Stream watch = Watch("");
  EXPECT_EQ(StatusIn(watch.Next()), "SERVING");
  world_.shard().Drain();
  EXPECT_EQ(StatusIn(watch.Next()), "NOT_SERVING");
  std::thread stopping([this] { world_.Stop(absl::InfiniteDuration()); });
  EXPECT_EQ(StatusIn(watch.Next()), "end");
  EXPECT_THAT(watch.Finish(), IsOk());
  stopping.join();
}

TEST_F(HealthWatchTest, TellsThatAServiceIsUnknown) {
  ReflectionClient::Stream watch = Watch("sluice.v7.Nothing");
  EXPECT_EQ(StatusIn(watch.Next()), "SERVICE_UNKNOWN");
  watch.Cancel();
}

}  // namespace
}  // namespace sluice

// The stream of what the server's trace records while somebody asks.

#include "server/rpc/operator/collect_trace.h"

#include <string>

#include "common/wire/settings.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::CollectTraceRequest For(absl::Duration time) {
  v1::CollectTraceRequest request;
  *request.mutable_time() = ToProto(time);
  return request;
}

TEST(CollectTraceTest, SendsTheSpansThatEndMeanwhileAndLeavesNothingBehind) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {1, 1, 1}), IsOk());  // nobody records it
  const auto context = world.Context();
  const auto stream = world.admin().CollectTrace(context.get(), For(absl::Seconds(60)));
  v1::CollectTraceResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.spans(), 0);
  ASSERT_THAT(world.Push("a", 1, {1, 1, 1}), IsOk());
  std::string events;
  while (events.find("\"apply\"") == std::string::npos && stream->Read(&response)) {
    events += response.events();
  }
  EXPECT_THAT(events, AllOf(HasSubstr("\"push a\""), HasSubstr("{\"step\":1}")));
  EXPECT_EQ(events.find("{\"step\":0}"), std::string::npos);
  context->TryCancel();
  stream->Finish();
  EXPECT_TRUE(world.Await([&world] { return !world.shard().store().trace()->records(); }));
}

TEST(CollectTraceTest, EndsWhenItsTimeIsOver) {
  ServerWorld world(Sync(1));
  const auto context = world.Context();
  const auto stream = world.admin().CollectTrace(context.get(), For(absl::Milliseconds(1)));
  v1::CollectTraceResponse response;
  while (stream->Read(&response)) EXPECT_EQ(response.spans(), 0);
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
}

TEST(CollectTraceTest, EndsWithTheServer) {
  ServerWorld world(Sync(1));
  const auto context = world.Context();
  const auto stream = world.admin().CollectTrace(context.get(), For(absl::Seconds(60)));
  v1::CollectTraceResponse response;
  ASSERT_TRUE(stream->Read(&response));
  world.Stop(absl::Seconds(10));
  while (stream->Read(&response)) continue;
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
}

TEST(CollectTraceTest, RefusesATimeThatIsNoneOrTooLong) {
  for (const absl::Duration time : {absl::ZeroDuration(), -absl::Seconds(1), absl::Seconds(61)}) {
    EXPECT_THAT(CheckCollectTrace(For(time)),
                IsError(Reason::kBadArgument, HasSubstr("expected more than 0 and at most 1m")));
  }
  EXPECT_THAT(CheckCollectTrace(For(absl::Seconds(60))), IsOk());
}

TEST(CollectTraceTest, NeedsTheToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  grpc::ClientContext stranger;
  const auto stream = world.admin().CollectTrace(&stranger, For(absl::Seconds(1)));
  v1::CollectTraceResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsError(Reason::kBadToken, HasSubstr("token")));
  EXPECT_FALSE(world.shard().store().trace()->records());
}

}  // namespace
}  // namespace sluice

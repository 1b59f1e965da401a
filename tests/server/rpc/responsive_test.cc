// Small calls are answered while work of the model's size is held up, whatever work that is.

#include <grpcpp/grpcpp.h>

#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/parallel.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kLarge = kPartElements + 1;

// What the test holds of a server's executors.
struct Held {
  Executors Make() {
    return {Own(&arrivals), Own(&steps), Own(&encodings), Own(&summaries), Own(&hooks)};
  }

  static std::unique_ptr<Executor> Own(HeldExecutor** held) {
    auto executor = std::make_unique<HeldExecutor>();
    *held = executor.get();
    return executor;
  }

  HeldExecutor* arrivals = nullptr;
  HeldExecutor* steps = nullptr;
  HeldExecutor* encodings = nullptr;
  HeldExecutor* summaries = nullptr;
  HeldExecutor* hooks = nullptr;
};

// A server with a large model and a worker "a".
class ResponsiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Join("a"), IsOk());
    ASSERT_THAT(world_.Initialize("a", Values(kLarge, 0)), IsOk());
  }

  // Sends a whole push, and does not wait for its answer.
  std::unique_ptr<PushStream> SendPush() {
    auto push = world_.OpenPush();
    EXPECT_TRUE(push->Write(HeaderOf(world_.NextHeader("a", 0))));
    EXPECT_TRUE(push->Write(GradientOf(0, Values(kLarge, 2))));
    push->End();
    return push;
  }

  // For six leases nobody is evicted, since heartbeats are answered; and others may join and look.
  void ExpectAnswers() {
    for (int second = 0; second < 60; ++second) {
      world_.Pass(absl::Seconds(1));
      ASSERT_THAT(world_.Heartbeat("a"), IsOkAndHolds(0));
    }
    ASSERT_THAT(world_.Observe("watcher"), IsOk());
    v1::ServerState state;
    ASSERT_TRUE(world_.inspector().GetServerState(world_.Context().get(), {}, &state).ok());
    EXPECT_EQ(state.workers(), 1u);
  }

  Held held_;
  ServerWorld world_{Sync(1), ParametersOnly(kLarge), "", {}, BuiltinTransforms(), held_.Make()};
};

TEST_F(ResponsiveTest, WhileAStepIsHeldUp) {
  held_.steps->Hold();
  const auto push = SendPush();
  held_.steps->Await(1);
  ExpectAnswers();
  held_.steps->Release();
  EXPECT_THAT(push->Answer(), IsOk());
  EXPECT_THAT(world_.Heartbeat("a"), IsOkAndHolds(1));
}

TEST_F(ResponsiveTest, WhileTheCheckOfALargeChunkIsHeldUp) {
  held_.arrivals->Hold();
  const auto push = SendPush();
  held_.arrivals->Await(1);
  ExpectAnswers();
  held_.arrivals->Release();
  EXPECT_THAT(push->Answer(), IsOk());
}

TEST_F(ResponsiveTest, WhileAnEncodingIsHeldUp) {
  held_.encodings->Hold();
  v1::PullParamsRequest request;
  request.set_session(world_.session("a"));
  request.mutable_encoding()->set_transform(v1::BFLOAT16_VALUES);
  const auto context = world_.Context();
  const auto pull = world_.stub().PullParams(context.get(), request);
  held_.encodings->Await(1);
  ExpectAnswers();
  held_.encodings->Release();
  v1::PullParamsResponse message;
  ASSERT_TRUE(pull->Read(&message));
  EXPECT_EQ(message.header().step(), 0u);
  uint64_t elements = 0;
  while (pull->Read(&message)) elements += message.chunk().encoding().count();
  EXPECT_EQ(elements, kLarge);
  EXPECT_TRUE(pull->Finish().ok());
}

// A call whose answer is awaited later.
struct Summary {
  std::unique_ptr<grpc::ClientContext> context;
  v1::GetParameterRequest request;
  v1::GetParameterResponse response;
  grpc::Status status;
  absl::Notification done;
};

TEST_F(ResponsiveTest, WhileStatisticsAreHeldUpAndFurtherOnesAreRefused) {
  held_.summaries->Hold();
  std::list<Summary> summaries(16);
  for (Summary& summary : summaries) {
    summary.context = world_.Context();
    summary.request.set_name("w");
    world_.inspector().async()->GetParameter(summary.context.get(), &summary.request,
                                             &summary.response, [&](grpc::Status status) {
                                               summary.status = std::move(status);
                                               summary.done.Notify();
                                             });
  }
  held_.summaries->Await(16);
  ExpectAnswers();
  v1::GetParameterResponse none;
  const grpc::Status refused =
      world_.inspector().GetParameter(world_.Context().get(), summaries.front().request, &none);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("16 calls wait for statistics"));
  held_.summaries->Release();
  for (Summary& summary : summaries) {
    summary.done.WaitForNotification();
    EXPECT_TRUE(summary.status.ok()) << summary.status.error_message();
    EXPECT_EQ(summary.response.parameter().length(), kLarge);
  }
  const grpc::Status again =
      world_.inspector().GetParameter(world_.Context().get(), summaries.front().request, &none);
  EXPECT_TRUE(again.ok()) << again.error_message();
}

// The worker is not told, since its call was cancelled, but its push counts.
TEST_F(ResponsiveTest, AStepThatIsHeldUpIsMadeWhileTheServerGoesDown) {
  held_.steps->Hold();
  const auto push = SendPush();
  held_.steps->Await(1);
  std::thread stop([&] { world_.Stop(); });
  EXPECT_FALSE(push->Answer().ok());
  held_.steps->Release();
  stop.join();
  EXPECT_EQ(world_.shard().Describe().step, Step(1));
}

}  // namespace
}  // namespace sluice

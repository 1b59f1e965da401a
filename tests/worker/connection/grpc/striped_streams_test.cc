// What becomes of the streams to several servers when one of them breaks off, or nobody waits for
// them any more. The worlds' destructors expect that no push and no pull is left.

#include <memory>
#include <thread>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/striped_worlds.h"
#include "tests/testing/status.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kServers = 3;
constexpr uint32_t kSize = 1'000'000;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// Values that differ from their neighbors, and that float16 has.
Values Halves() {
  Values values(kSize);
  for (uint32_t i = 0; i < kSize; ++i) values[i] = 0.5F * static_cast<float>(i % 1999);
  return values;
}

class StripedStreamsTest : public ::testing::Test {
 protected:
  StripedStreamsTest() {
    JoinRequest request = WorkerRequest("a", kSize);
    const auto welcome = connection_->Join(request);
    EXPECT_THAT(welcome, IsOk());
    welcome_ = *welcome;
    const auto initialized = connection_->Initialize(welcome_.session, vector_.values);
    EXPECT_THAT(initialized, IsOk());
    EXPECT_TRUE(initialized->accepted);
  }

  std::unique_ptr<OutgoingPush> StartPush(BatchIs batch = BatchIs::kInHeader) {
    PushHeader header;
    header.session = welcome_.session;
    header.sequence = Sequence(1);
    header.incarnation = welcome_.incarnation;
    return connection_->StartPush(header, kSize, batch);
  }

  std::unique_ptr<PendingPull> StartPull(uint64_t min_step) {
    PullRequest request;
    request.session = welcome_.session;
    request.min_step = Step(min_step);
    return connection_->StartPull(request);
  }

  bool InProgress(uint32_t server) {
    return worlds_.world(server).shard().Describe().counters.in_progress > 0;
  }

  StripedWorlds worlds_{ParametersOnly(kSize), kServers, &OverGrpc};
  const std::unique_ptr<ServerConnection> connection_ = worlds_.Connect(absl::ZeroDuration());
  const SharedFloats vector_ = Share(Halves());
  Welcome welcome_;
  Values pulled_ = Values(kSize);
};

TEST_F(StripedStreamsTest, APushThatIsGivenUpEndsAllItsStreams) {
  auto push = StartPush(BatchIs::kInSummary);
  EXPECT_TRUE(push->Send(0, vector_.Part(0, kSize / 2)));
  for (uint32_t i = 0; i < kServers; ++i) {
    EXPECT_TRUE(worlds_.world(i).Await([&] { return InProgress(i); }));
  }
  push = nullptr;
  for (uint32_t i = 0; i < kServers; ++i) {
    EXPECT_EQ(worlds_.world(i).Counters(), "1 received: 1 aborted");
  }
}

TEST_F(StripedStreamsTest, AServerThatIsGoneEndsAPushBeforeItIsSent) {
  worlds_.world(1).Stop();
  const auto push = StartPush();
  push->Send(0, vector_);
  const auto outcome = push->Finish({});
  EXPECT_THAT(outcome, HasCode(kUnavailable, HasSubstr("server 1 of 3 at 1: ")));
  EXPECT_TRUE(IsLost(outcome.status()));
}

TEST_F(StripedStreamsTest, AServerThatGoesEndsAPushThatIsHalfSent) {
  const auto push = StartPush(BatchIs::kInSummary);
  EXPECT_TRUE(push->Send(0, vector_.Part(0, kSize / 2)));
  for (const uint32_t i : {0, 2}) {
    EXPECT_TRUE(worlds_.world(i).Await([&] { return InProgress(i); }));
  }
  worlds_.world(2).Stop();
  push->Send(kSize / 2, vector_.Part(kSize / 2, kSize - kSize / 2));
  EXPECT_THAT(push->Finish({1, 0.5F, nullptr, nullptr, absl::nullopt}),
              HasCode(kUnavailable, HasSubstr("server 2 of 3 at 2: ")));
  EXPECT_EQ(worlds_.world(0).Counters(), "1 received: 1 aborted");
  EXPECT_TRUE(worlds_.world(1).Await([&] { return !InProgress(1); }));
}

TEST_F(StripedStreamsTest, AServerThatGoesEndsAPullThatWaits) {
  const auto pull = StartPull(1);
  std::thread reader([&] {
    EXPECT_THAT(pull->Read(absl::MakeSpan(pulled_)), HasCode(kUnavailable, HasSubstr("1 of 3")));
  });
  for (uint32_t i = 0; i < kServers; ++i) {
    ServerWorld& world = worlds_.world(i);
    EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  }
  worlds_.world(1).Stop();
  reader.join();
  EXPECT_FALSE(pull->wrote());
  ServerWorld& first = worlds_.world(0);
  EXPECT_TRUE(first.Await([&] { return first.shard().Describe().waiting_pulls == 0; }));
}

TEST_F(StripedStreamsTest, CancelEndsAPullThatWaits) {
  const auto pull = StartPull(1);
  std::thread reader([&] { EXPECT_FALSE(pull->Read(absl::MakeSpan(pulled_)).ok()); });
  pull->Cancel();
  reader.join();
}

TEST_F(StripedStreamsTest, APullThatIsGivenUpEndsAllItsStreams) {
  auto pull = StartPull(1);
  for (uint32_t i = 0; i < kServers; ++i) {
    ServerWorld& world = worlds_.world(i);
    EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  }
  pull = nullptr;
  for (uint32_t i = 0; i < kServers; ++i) {
    ServerWorld& world = worlds_.world(i);
    EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 0; }));
  }
}

TEST_F(StripedStreamsTest, EncodedParametersAreScattered) {
  Encoding encoding;
  encoding.transform = ValueTransform::kFloat16;
  connection_->UsePullEncoding(encoding);
  const auto pull = StartPull(0);
  EXPECT_THAT(pull->Read(absl::MakeSpan(pulled_)), IsOk());
  EXPECT_TRUE(pulled_ == Halves());
  EXPECT_LT(pull->transfer().bytes, 3u * kSize);
}

TEST_F(StripedStreamsTest, AnOfferThatComesTooLateIsAnswered) {
  const auto again = connection_->Initialize(welcome_.session, vector_.values);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->accepted);
}

TEST_F(StripedStreamsTest, AServerThatIsGoneEndsAnOffer) {
  worlds_.world(1).Stop();
  EXPECT_THAT(connection_->Initialize(welcome_.session, vector_.values),
              HasCode(kUnavailable, HasSubstr("server 1 of 3 at 1: ")));
}

}  // namespace
}  // namespace sluice

// A worker of a job with several servers, in the same process and over gRPC.

#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/encoding/encoding_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/striped_worlds.h"
#include "tests/testing/status.h"
#include "worker/client/parameter_client.h"
#include "worker/client/parameter_follower.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// Numbers in [-1, 1) that differ from each other.
Values Random(uint64_t size, uint32_t seed) {
  Values values(size);
  uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
  }
  return values;
}

// How a gradient is pushed.
enum class Pushes { kWhole, kInParts };

class StripedClientTest : public ::testing::TestWithParam<Transport> {
 protected:
  JoinRequest RequestFor(const Layout& layout, SessionRole role = SessionRole::kWorker) {
    JoinRequest request = WorkerRequest("a", static_cast<uint32_t>(layout.size()));
    request.layout = layout;
    request.role = role;
    return request;
  }

  // The parameters after three rounds of one worker.
  Values Train(std::unique_ptr<ServerConnection> connection, const Layout& layout, Pushes pushes,
               GradientEncoding encoding = {}) {
    ParameterClient client(std::move(connection), std::move(encoding));
    Values parameters = Random(layout.size(), 1);
    EXPECT_THAT(client.Join(RequestFor(layout), absl::MakeSpan(parameters)), IsOk());
    for (uint32_t round = 0; round < 3; ++round) {
      const SharedFloats gradient = Share(Random(layout.size(), 10 + round));
      if (pushes == Pushes::kInParts) SendParts(client, layout, gradient);
      const auto report = client.PushPull(gradient, 32, 0.5F, absl::MakeSpan(parameters));
      EXPECT_THAT(report, IsOk());
      EXPECT_EQ(client.step(), Step(round + 1));
    }
    EXPECT_THAT(client.Leave({}), IsOk());
    return parameters;
  }

  // Backward computes the last tensor first.
  static void SendParts(ParameterClient& client, const Layout& layout,
                        const SharedFloats& gradient) {
    for (size_t i = layout.ranges().size(); i-- > 1;) {
      const LayoutRange& range = layout.ranges()[i];
      client.SendEarly(range.offset, gradient.Part(range.offset, range.length));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, StripedClientTest, ::testing::Values(&InProcess, &OverGrpc),
                         TransportName);

// Units of 64, of 2048, and with an uneven tail.
TEST_P(StripedClientTest, HasTheSameBitsAsWithOneServer) {
  for (const Layout& layout :
       {LayoutOf({{"a", 70}, {"b", 200}, {"c", 1}, {"d", 50}}),
        LayoutOf({{"a", 300'000}, {"b", 7}, {"c", 900'000}, {"d", 64}, {"e", 11}})}) {
    ServerWorld world(Sync(1), layout);
    const Values expected = Train(GetParam()(world), layout, Pushes::kWhole);
    for (const uint32_t servers : {2, 3, 5}) {
      for (const Pushes pushes : {Pushes::kWhole, Pushes::kInParts}) {
        StripedWorlds worlds(layout, servers, GetParam());
        const Values parameters = Train(worlds.Connect(), layout, pushes);
        EXPECT_TRUE(parameters == expected) << servers << " servers, " << layout.size();
        for (uint32_t i = 0; i < servers; ++i) {
          EXPECT_EQ(worlds.world(i).Counters(), "3 received: 3 accepted");
        }
      }
    }
  }
}

TEST_P(StripedClientTest, AFollowerSeesWholeSteps) {
  const Layout layout = ParametersOnly(1000);
  StripedWorlds worlds(layout, 3, GetParam());
  ParameterClient worker(worlds.Connect());
  Values parameters = Random(1000, 1);
  ASSERT_THAT(worker.Join(RequestFor(layout), absl::MakeSpan(parameters)), IsOk());
  JoinRequest request = RequestFor(layout, SessionRole::kObserver);
  request.worker = "observer";
  ParameterFollower follower(worlds.Connect(), request, absl::Seconds(1));
  Values followed(1000);
  ASSERT_THAT(follower.Next(1, absl::MakeSpan(followed)), IsOk());
  EXPECT_TRUE(followed == parameters);
  ASSERT_THAT(worker.PushPull(Share(Random(1000, 2)), 1, 0.5F, absl::MakeSpan(parameters)), IsOk());
  ASSERT_THAT(follower.Next(1, absl::MakeSpan(followed)), IsOk());
  EXPECT_TRUE(followed == parameters);
}

// The optimizer's state after three rounds.
PulledSlots SlotsAfter(std::unique_ptr<ServerConnection> connection, const Layout& layout,
                       JoinRequest request) {
  request.optimizer.options = AdamOptions();
  ParameterClient client(std::move(connection));
  Values parameters = Random(layout.size(), 1);
  EXPECT_THAT(client.Join(request, absl::MakeSpan(parameters)), IsOk());
  for (uint32_t round = 0; round < 3; ++round) {
    const SharedFloats gradient = Share(Random(layout.size(), 10 + round));
    EXPECT_THAT(client.PushPull(gradient, 1, 0.5F, absl::MakeSpan(parameters)), IsOk());
  }
  const auto slots = client.PullSlots();
  EXPECT_THAT(slots, IsOk());
  EXPECT_THAT(client.Leave({}), IsOk());
  return slots.value_or(PulledSlots());
}

TEST_P(StripedClientTest, BringsTheSlotsOfAllServersWithTheBitsOfOne) {
  for (const Layout& layout :
       {LayoutOf({{"a", 70}, {"b", 200}, {"c", 1}, {"d", 50}}), LayoutOf({{"a", 1'500'001}})}) {
    if (GetParam() == &InProcess) GTEST_SKIP() << "its connection carries no slots";
    ServerWorld world(Sync(1), layout);
    const PulledSlots expected = SlotsAfter(GetParam()(world), layout, RequestFor(layout));
    EXPECT_THAT(expected.names, ElementsAre("exp_avg", "exp_avg_sq"));
    EXPECT_EQ(expected.bytes.size(), 2 * 4 * layout.size());
    StripedWorlds worlds(layout, 3, GetParam());
    const PulledSlots slots = SlotsAfter(worlds.Connect(), layout, RequestFor(layout));
    EXPECT_EQ(slots.names, expected.names);
    EXPECT_EQ(slots.step, Step(3));
    EXPECT_EQ(slots.optimizer_steps, 3u);
    EXPECT_TRUE(slots.bytes == expected.bytes);
  }
}

GradientEncoding EncodingOf(const std::string& choice) {
  GradientEncoding encoding;
  encoding.choice = *ParseEncodingChoice(choice);
  return encoding;
}

// Units of 1024, which are whole blocks.
TEST_P(StripedClientTest, EncodedGradientsHaveTheSameBitsAsWithOneServer) {
  const Layout layout = LayoutOf({{"a", 70'001}, {"b", 460'000}, {"c", 1500}, {"d", 99}});
  for (const char* choice : {"float16", "int8", "sign/zstd"}) {
    ServerWorld world(Sync(1), layout);
    const Values expected = Train(GetParam()(world), layout, Pushes::kWhole, EncodingOf(choice));
    for (const uint32_t servers : {2, 3}) {
      for (const Pushes pushes : {Pushes::kWhole, Pushes::kInParts}) {
        StripedWorlds worlds(layout, servers, GetParam());
        EXPECT_TRUE(Train(worlds.Connect(), layout, pushes, EncodingOf(choice)) == expected)
            << choice << ", " << servers << " servers";
        for (uint32_t i = 0; i < servers; ++i) {
          EXPECT_EQ(worlds.world(i).Counters(), "3 received: 3 accepted");
        }
      }
    }
  }
}

// The chosen values depend on how the vector is cut, and how it was sent does not matter.
TEST_P(StripedClientTest, SparseGradientsHaveTheSameBitsHoweverTheyAreSent) {
  const Layout layout = LayoutOf({{"a", 3000}, {"small", 10}, {"b", 5000}});
  for (const char* choice : {"top-k:0.1", "random-k:0.1"}) {
    StripedWorlds whole(layout, 3, GetParam());
    const Values expected = Train(whole.Connect(), layout, Pushes::kWhole, EncodingOf(choice));
    EXPECT_FALSE(expected == Random(layout.size(), 1)) << choice;
    StripedWorlds in_parts(layout, 3, GetParam());
    EXPECT_TRUE(Train(in_parts.Connect(), layout, Pushes::kInParts, EncodingOf(choice)) == expected)
        << choice;
  }
}

TEST_P(StripedClientTest, RefusesAutoWithAnEncodingOfMatrices) {
  const Layout layout = ParametersOnly(1000);
  StripedWorlds worlds(layout, 2, GetParam());
  ParameterClient client(worlds.Connect(), EncodingOf("auto:int8,low-rank:2"));
  Values parameters(1000);
  EXPECT_THAT(client.Join(RequestFor(layout), absl::MakeSpan(parameters)),
              IsError(Reason::kBadArgument,
                      HasSubstr("with 2 servers: auto cannot choose low-rank:2 there")));
  EXPECT_EQ(worlds.world(0).Counters(), "0 received: ");
  EXPECT_EQ(worlds.world(0).shard().Sessions()[0].presence, Presence::kEvicted);
}

TEST_P(StripedClientTest, WithLosslessChoicesHasTheBitsOfOneServer) {
  const Layout layout = ParametersOnly(100'000);
  ServerWorld world(Sync(1), layout);
  const Values expected = Train(GetParam()(world), layout, Pushes::kWhole);
  StripedWorlds worlds(layout, 2, GetParam());
  EXPECT_TRUE(Train(worlds.Connect(), layout, Pushes::kInParts, EncodingOf("auto")) == expected);
}

}  // namespace
}  // namespace sluice

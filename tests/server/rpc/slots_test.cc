// PullSlots over real gRPC: what the server's optimizer remembers.

#include "server/rpc/slots.h"

#include <cstring>
#include <string>
#include <vector>

#include "common/encoding/checksum.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct PulledSlots {
  v1::PullSlotsResponse first;
  std::string bytes;

  Values slot(size_t number, size_t elements) const {
    Values values(elements);
    std::memcpy(values.data(), bytes.data() + number * elements * sizeof(float),
                elements * sizeof(float));
    return values;
  }
};

absl::StatusOr<PulledSlots> PullSlots(ServerWorld& world, uint64_t session) {
  const auto context = world.Context();
  v1::PullSlotsRequest request;
  request.set_session(session);
  const auto call = world.stub().PullSlots(context.get(), request);
  PulledSlots pulled;
  bool more = call->Read(&pulled.first);
  for (v1::PullSlotsResponse part; more && (more = call->Read(&part));) pulled.bytes += part.data();
  const absl::Status end = FromGrpcStatus(call->Finish());
  if (!end.ok()) return end;
  return pulled;
}

v1::JoinRequest WithAdam(v1::JoinRequest request) {
  v1::AdamOptions& adam = *request.mutable_optimizer()->mutable_adam();
  adam.set_learning_rate(0.5);
  adam.set_beta1(0.5);
  adam.set_beta2(0.75);
  adam.set_eps(1e-8);
  return request;
}

TEST(SlotsTest, BringsTheSlotsOfTheLatestStep) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.JoinAs(WithAdam(world.RequestOf("a"))), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 1, 1}), IsOk());
  ASSERT_THAT(world.Push("a", 0, {2, 4, -8}), Applied(1));
  ASSERT_THAT(world.Push("a", 1, {2, 4, -8}), Applied(2));
  const auto pulled = PullSlots(world, world.session("a"));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(pulled->first.names(), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_EQ(pulled->first.step(), 2u);
  EXPECT_EQ(pulled->first.optimizer_steps(), 2u);
  ASSERT_EQ(pulled->bytes.size(), 6 * sizeof(float));
  EXPECT_EQ(pulled->slot(0, 3), (Values{1.5, 3, -6}));
  EXPECT_EQ(pulled->slot(1, 3), (Values{1.75, 7, 28}));
  EXPECT_THAT(pulled->first.checksums(), ElementsAre(Checksum(pulled->bytes.substr(0, 12)),
                                                     Checksum(pulled->bytes.substr(12))));
}

TEST(SlotsTest, AnOptimizerWithoutSlotsHasNone) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", {1, 1, 1}), IsOk());
  const auto pulled = PullSlots(world, world.session("a"));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(pulled->first.names(), IsEmpty());
  EXPECT_THAT(pulled->bytes, IsEmpty());
}

TEST(SlotsTest, SlotsOfManyMessagesComeWhole) {
  constexpr uint32_t kElements = 600001;
  ServerWorld world(Sync(1), ParametersOnly(kElements));
  ASSERT_THAT(world.JoinAs(WithAdam(world.RequestOf("a"))), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(kElements, 0)), IsOk());
  Values gradient(kElements);
  for (uint32_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>(i);
  ASSERT_THAT(world.Push("a", 0, gradient), Applied(1));
  const auto pulled = PullSlots(world, world.session("a"));
  ASSERT_THAT(pulled, IsOk());
  ASSERT_EQ(pulled->bytes.size(), 2 * kElements * sizeof(float));
  for (float& element : gradient) element /= 2;
  EXPECT_TRUE(pulled->slot(0, kElements) == gradient);
}

TEST(SlotsTest, AReaderThatStopsHoldsUpNobody) {
  constexpr uint32_t kElements = 1000000;  // whose slots are more than a stream may hold
  ServerWorld world(Sync(1), ParametersOnly(kElements));
  ASSERT_THAT(world.JoinAs(WithAdam(world.RequestOf("a"))), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(kElements, 0)), IsOk());
  v1::PullSlotsRequest request;
  request.set_session(world.session("a"));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::PullSlotsResponse>>> stopped;
  for (int i = 0; i < 20; ++i) {
    contexts.push_back(world.Context());
    stopped.push_back(world.stub().PullSlots(contexts.back().get(), request));
    v1::PullSlotsResponse first;
    ASSERT_TRUE(stopped.back()->Read(&first));
  }
  const auto pulled = PullSlots(world, world.session("a"));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->bytes.size(), 2 * kElements * sizeof(float));
  for (size_t i = 0; i < stopped.size(); ++i) {
    contexts[i]->TryCancel();
    stopped[i]->Finish();
  }
}

TEST(SlotsTest, NeedsASessionAndParameters) {
  ServerWorld world(Sync(1));
  EXPECT_THAT(PullSlots(world, 7), IsError(Reason::kUnknownSession, StartsWith("")));
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(PullSlots(world, world.session("a")),
              IsError(Reason::kNotInitialized, StartsWith("")));
}

}  // namespace
}  // namespace sluice

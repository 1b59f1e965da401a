// What the comments of proto/ promise to a worker that was written from them alone, where no other
// test says it: statuses without ErrorInfo, waits, limits, and fields that have no effect.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A status that gRPC made: it has no ErrorInfo.
MATCHER_P2(IsPlain, code, message, "has the code, the message and no reason") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return ReasonOf(status) == Reason::kNone && status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

std::unique_ptr<ServerWorld> Trained(uint32_t elements) {
  auto world = std::make_unique<ServerWorld>(Sync(1), ParametersOnly(elements));
  EXPECT_THAT(world->Join("a"), IsOk());
  const uint32_t half = elements / 2;
  EXPECT_THAT(
      world->SendParameters({HeaderOf(world->session("a")), ParametersOf(0, Values(half, 1)),
                             ParametersOf(half, Values(elements - half, 1))}),
      IsOk());
  return world;
}

// ---- Statuses without ErrorInfo ----

TEST(ContractTest, StatusesOfGrpcHaveNoErrorInfo) {
  ServerWorld world(Sync(1));
  ASSERT_THAT(world.Join("a"), IsOk());
  const auto channel =
      grpc::CreateChannel(world.address().ToString(), grpc::InsecureChannelCredentials());
  for (const char* method : {"/sluice.v1.ParameterServer/NoSuch", "/sluice.v2.Other/Join"}) {
    EXPECT_THAT(CallOnce(channel, method),
                IsPlain(absl::StatusCode::kUnimplemented,
                        "the server has no method " + std::string(method)));
  }
  const std::string garbage = "\xff\xff\xff";
  for (const char* method : {"/sluice.v1.Inspector/ListWorkers", "/sluice.v1.Admin/SetPolicy",
                             "/grpc.health.v1.Health/Check"}) {
    EXPECT_THAT(CallOnce(channel, method, garbage), IsPlain(absl::StatusCode::kUnimplemented, ""))
        << method;
  }
  EXPECT_THAT(
      CallOnce(channel, "/sluice.v1.Inspector/GetServerState", std::string((4 << 20) + 1, '\0')),
      IsPlain(absl::StatusCode::kResourceExhausted,
              HasSubstr("larger than max (4194305 vs. 4194304)")));
  v1::PullParamsRequest pull;
  pull.set_session(world.session("a"));
  EXPECT_THAT(world.PullAs(pull, absl::Milliseconds(50)),
              IsPlain(absl::StatusCode::kDeadlineExceeded, "Deadline Exceeded"));
}

TEST(ContractTest, MetadataAboveItsLimitIsResourceExhausted) {
  ServerWorld world(Sync(1));
  const auto context = world.Context();
  context->AddMetadata("x-large", std::string(9000, 'x'));
  v1::ServerState state;
  EXPECT_THAT(FromGrpcStatus(world.inspector().GetServerState(context.get(), {}, &state)),
              IsPlain(absl::StatusCode::kResourceExhausted, _));
}

TEST(ContractTest, BytesThatAreNoMessageAreNamedByEveryCallOfParameterServer) {
  const auto world = Trained(3);
  const auto push = world->OpenPush();
  push->Write(HeaderOf(world->NextHeader("a", 0)));
  grpc::GenericStub stub(
      grpc::CreateChannel(world->address().ToString(), grpc::InsecureChannelCredentials()));
  for (const auto& [method, reason] : {std::make_pair("PushLane", Reason::kMissingHeader),
                                       std::make_pair("PullLane", Reason::kBadArgument),
                                       std::make_pair("Join", Reason::kBadArgument),
                                       std::make_pair("Heartbeat", Reason::kBadArgument),
                                       std::make_pair("Leave", Reason::kBadArgument)}) {
    GenericCall call(stub, std::string("/sluice.v1.ParameterServer/") + method);
    call.Write("\xff\xff\xff");
    call.WritesDone();
    EXPECT_FALSE(call.Read().has_value());
    EXPECT_THAT(call.Finish(), IsError(reason, _)) << method;
  }
  v1::PushGradientsRequest none;
  push->Write(none);
  EXPECT_THAT(push->Answer(), IsError(Reason::kBadArgument, HasSubstr("holds no chunk")));
}

// ---- Before there are parameters ----

TEST(ContractTest, APullBeforeThereAreParametersWaitsWhereAPushIsRefused) {
  ServerWorld world(Sync(1));
  const auto not_initialized = IsError(Reason::kNotInitialized, _);
  EXPECT_THAT(world.Observe("o"), not_initialized);
  ASSERT_THAT(world.Join("a"), IsOk());
  EXPECT_THAT(world.AnswerToHeader(world.NextHeader("a", 0)), not_initialized);
  v1::GetParameterRequest get;
  get.set_name("w");
  v1::GetParameterResponse got;
  EXPECT_THAT(FromGrpcStatus(world.inspector().GetParameter(world.Context().get(), get, &got)),
              not_initialized);
  absl::StatusOr<Pulled> pulled = absl::UnknownError("not pulled");
  std::thread puller([&] { pulled = world.Pull("a", 0); });
  EXPECT_TRUE(world.Await([&] { return world.shard().Describe().waiting_pulls == 1; }));
  ASSERT_THAT(world.Initialize("a", {1, 2, 3}), IsOk());
  puller.join();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->values, Values({1, 2, 3}));
}

// ---- Chunks ----

constexpr uint32_t kLargestChunk = 1048568;  // as tensor.proto says

TEST(ContractTest, TheLargestPlainChunkFitsIntoAMessageWithEveryField) {
  const auto world = Trained(kLargestChunk + 128);
  v1::PushGradientsRequest large = GradientOf(128, Values(kLargestChunk, 1));
  large.mutable_chunk()->set_checksum(Checksum(large.chunk().payload()));
  EXPECT_THAT(
      world->SendPush({HeaderOf(world->NextHeader("a", 0)), GradientOf(0, Values(128, 1)), large}),
      Applied(1));
  EXPECT_THAT(world->SendPush({HeaderOf(world->NextHeader("a", 1)),
                               GradientOf(0, Values(kLargestChunk + 8, 1))}),
              IsPlain(absl::StatusCode::kResourceExhausted, HasSubstr("larger than max")));
}

// The numbers in tensor.proto.
TEST(ContractTest, AChecksumIsXxh3WithSeedZero) {
  EXPECT_EQ(Checksum(""), 0x2d06800538d394c2u);
  EXPECT_EQ(Checksum("abc"), 0x78af5f94892f3950u);
}

TEST(ContractTest, AChunkInSharedMemoryHasNoEncoding) {
  const auto world = Trained(3);
  v1::PushGradientsRequest both;
  both.mutable_chunk()->mutable_shared()->set_count(3);
  both.mutable_chunk()->mutable_encoding()->set_count(3);
  EXPECT_THAT(world->SendPush({HeaderOf(world->NextHeader("a", 0)), both}),
              IsError(Reason::kBadChunk, HasSubstr("lies in shared memory and has an encoding")));
}

TEST(ContractTest, ChunksOfSmallTensorsAndStatisticsComePlainInSpiteOfAnEncoding) {
  ServerWorld world(
      Sync(1),
      LayoutOf({{"large", 1024}, {"small", 1023}, {"statistic", 2000, RangeKind::kStatistic}}));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(1024 + 1023 + 2000, 1)), IsOk());
  v1::PullParamsRequest request;
  request.set_session(world.session("a"));
  request.mutable_encoding()->set_transform(v1::FLOAT16_VALUES);
  const auto context = world.Context();
  const auto stream = world.stub().PullParams(context.get(), request);
  v1::PullParamsResponse response;
  std::vector<std::pair<uint64_t, bool>> chunks;  // offset, and whether it is encoded
  while (stream->Read(&response)) {
    if (!response.has_chunk()) continue;
    chunks.emplace_back(response.chunk().offset(), response.chunk().has_encoding());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(chunks, ElementsAre(Pair(0, true), Pair(1024, false)));
}

TEST(ContractTest, SharedHasNoEffectTogetherWithAnEncoding) {
  ShardOptions options = Sync(1);
  options.snapshots = SnapshotMemory::kShared;
  ServerWorld world(options, ParametersOnly(2000));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Initialize("a", Values(2000, 1)), IsOk());
  v1::PullParamsRequest request;
  request.set_session(world.session("a"));
  request.set_shared(true);
  request.mutable_encoding()->set_transform(v1::FLOAT16_VALUES);
  const auto context = world.Context();
  const auto stream = world.stub().PullParams(context.get(), request);
  v1::PullParamsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.header().has_shared());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.chunk().has_encoding());
  while (stream->Read(&response)) {
  }
}

// ---- Members ----

TEST(ContractTest, TwoWorkersCannotHaveOneIndexAndNoneAnAbsurdOne) {
  ServerWorld world(Sync(3));
  v1::JoinRequest a = world.RequestOf("a");
  a.set_index(7);
  EXPECT_EQ(world.JoinAs(a)->index(), 7u);
  v1::JoinRequest b = world.RequestOf("b");
  b.set_index(7);
  EXPECT_THAT(world.JoinAs(b), IsError(Reason::kBadArgument,
                                       HasSubstr("field index is 7, which is the index of a")));
  b.set_index(4294967295u);
  EXPECT_THAT(world.JoinAs(b), IsError(Reason::kBadArgument, HasSubstr("less than 1024")));
  b.clear_index();
  EXPECT_EQ(world.JoinAs(b)->index(), 0u);
  EXPECT_EQ(world.JoinAs(a)->index(), 7u);
}

TEST(ContractTest, OfTwoResultsOfOneNameTheFirstStays) {
  ServerWorld world(Sync(2));
  for (const char* name : {"a", "b"}) ASSERT_THAT(world.Join(name), IsOk());
  float value = 0.5;
  for (const char* name : {"a", "b"}) {
    v1::LeaveRequest leave;
    leave.set_session(world.session(name));
    (*leave.mutable_results())["accuracy"] = value;
    EXPECT_THAT(world.LeaveAs(leave), IsOk());
    value = 0.75;
  }
  EXPECT_THAT(world.shard().results(), ElementsAre(Pair("accuracy", 0.5)));
}

TEST(ContractTest, TrainingEndsWhenTheLastWorkerHasLeftWhateverTheStep) {
  const auto world = Trained(3);
  ASSERT_THAT(world->Observe("o"), IsOk());
  EXPECT_THAT(world->Push("a", 0, {1, 1, 1}), Applied(1));
  EXPECT_THAT(world->Leave("a"), IsOkAndHolds(1u));
  EXPECT_EQ(world->NextEvent("o"), "finished 1");
  EXPECT_TRUE(world->Pull("o", 100)->header.last());
}

}  // namespace
}  // namespace sluice

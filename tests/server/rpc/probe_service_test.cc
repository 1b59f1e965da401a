// Probes over real gRPC: what they answer, what they may take of a server, and that a job does not
// notice them.

#include "server/rpc/probe_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/version.h"
#include "common/tensor/shared_memory.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/probe.grpc.pb.h"
#include "tests/testing/server/trained_server_test.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// One call of Measure, as a client in another language makes it.
class Prober {
 public:
  explicit Prober(const ServerWorld& world)
      : stub_(v1::Probe::NewStub(
            grpc::CreateChannel(world.address().ToString(), grpc::InsecureChannelCredentials()))),
        context_(world.Context()),
        stream_(stub_->Measure(context_.get())) {}

  bool Write(const v1::MeasureRequest& request) { return stream_->Write(request); }
  void EndWrites() { stream_->WritesDone(); }
  void Cancel() { context_->TryCancel(); }

  bool SendChunk(const v1::TensorChunk& payload) {
    v1::MeasureRequest request;
    *request.mutable_chunk() = payload;
    return Write(request);
  }
  bool Ask(uint32_t chunks) {
    v1::MeasureRequest request;
    request.mutable_send()->set_count(chunks);
    return Write(request);
  }
  v1::EchoAnswer Echo(const v1::Echo& echo = {}) {
    v1::MeasureRequest request;
    *request.mutable_echo() = echo;
    EXPECT_TRUE(Write(request));
    v1::MeasureResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response.echo();
  }
  // The bytes of the next chunk; 0 if there is none.
  size_t ReadChunk() {
    v1::MeasureResponse response;
    return stream_->Read(&response) ? response.chunk().payload().size() : 0;
  }

  // Reads what still comes, and returns how the call ended.
  absl::Status Finish() {
    v1::MeasureResponse response;
    while (stream_->Read(&response)) {
    }
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  const std::unique_ptr<v1::Probe::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::MeasureRequest, v1::MeasureResponse>> stream_;
};

v1::TensorChunk ChunkOf(size_t bytes) {
  v1::TensorChunk chunk;
  chunk.set_payload(std::string(bytes, '\0'));
  return chunk;
}

auto IsTooMany(const std::string& why) { return IsError(Reason::kTooManyProbes, HasSubstr(why)); }

RpcLimits WithProbes(int at_once, absl::Duration time, uint64_t bytes) {
  RpcLimits limits;
  limits.probes.at_once = at_once;
  limits.probes.time = time;
  limits.probes.bytes = bytes;
  return limits;
}

// ---- What it answers ----

TEST(GrpcProbeTest, AnswersBeforeAnybodyHasJoined) {
  ServerWorld world(Sync(1));
  Prober prober(world);
  const v1::EchoAnswer answer = prober.Echo();
  EXPECT_EQ(answer.bytes(), 0u);
  EXPECT_EQ(answer.version(), kVersion);
  EXPECT_EQ(answer.protocol(), 3u);
  EXPECT_FALSE(answer.shares_memory());
  prober.EndWrites();
  EXPECT_THAT(prober.Finish(), IsOk());
}

TEST(GrpcProbeTest, CountsTheBytesThatItDiscards) {
  ServerWorld world(Sync(1));
  Prober prober(world);
  EXPECT_TRUE(prober.SendChunk(ChunkOf(1 << 20)));
  EXPECT_TRUE(prober.SendChunk(ChunkOf(4)));
  EXPECT_EQ(prober.Echo().bytes(), (1u << 20) + 4);
  EXPECT_TRUE(prober.SendChunk(ChunkOf(400)));
  EXPECT_EQ(prober.Echo().bytes(), (1u << 20) + 404);
}

TEST(GrpcProbeTest, SendsAsManyChunksAsItIsAskedFor) {
  ServerWorld world(Sync(1));
  Prober prober(world);
  ASSERT_TRUE(prober.Ask(2));
  ASSERT_TRUE(prober.Ask(1));
  prober.EndWrites();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(prober.ReadChunk(), 1u << 20);
  EXPECT_EQ(prober.ReadChunk(), 0u);
  EXPECT_THAT(prober.Finish(), IsOk());
}

TEST(GrpcProbeTest, TellsWhetherItCanReadTheCallersMemory) {
  ShardOptions options = Sync(1);
  options.snapshots = SnapshotMemory::kShared;
  ServerWorld world(options);
  Prober prober(world);
  const auto memory = SharedMemory::Create(4);
  ASSERT_THAT(memory, IsOk());
  v1::Echo echo;
  *echo.mutable_memory() = ToProto((*memory)->name());
  EXPECT_TRUE(prober.Echo(echo).shares_memory());
  echo.mutable_memory()->set_cookie(echo.memory().cookie() + 1);
  EXPECT_FALSE(prober.Echo(echo).shares_memory());
  EXPECT_FALSE(prober.Echo().shares_memory());
}

// ---- What it refuses ----

absl::Status AnswerTo(const v1::MeasureRequest& request) {
  ServerWorld world(Sync(1));
  Prober prober(world);
  prober.Write(request);
  return prober.Finish();
}

TEST(GrpcProbeTest, RefusesRequestsThatAreNone) {
  v1::MeasureRequest request;
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadArgument, HasSubstr("no field that is set")));
  request.mutable_send()->set_count(0);
  EXPECT_THAT(AnswerTo(request),
              IsError(Reason::kBadArgument, HasSubstr("is 0, expected 1 to 64")));
  request.mutable_send()->set_count(65);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadArgument, HasSubstr("send.count is 65")));
}

TEST(GrpcProbeTest, RefusesChunksThatAPushCouldNotHave) {
  v1::MeasureRequest request;
  *request.mutable_chunk() = ChunkOf(0);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadChunk, HasSubstr("has 0 elements")));
  *request.mutable_chunk() = ChunkOf(6);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadChunk, HasSubstr("expected a multiple of 4")));
  *request.mutable_chunk() = ChunkOf((1 << 20) + 4);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadChunk, HasSubstr("has 262145 elements")));
  *request.mutable_chunk() = ChunkOf(1 << 20);
  request.mutable_chunk()->set_checksum(1);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kCorruptChunk, _));
  *request.mutable_chunk() = ChunkOf(8);
  request.mutable_chunk()->set_checksum(1);
  request.mutable_chunk()->mutable_shared()->set_count(2);
  EXPECT_THAT(AnswerTo(request), IsError(Reason::kBadChunk, HasSubstr("shared memory")));
}

TEST(GrpcProbeTest, NeedsTheToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const auto channel =
      grpc::CreateChannel(world.address().ToString(), grpc::InsecureChannelCredentials());
  const auto stub = v1::Probe::NewStub(channel);
  grpc::ClientContext none;
  EXPECT_THAT(FromGrpcStatus(stub->Measure(&none)->Finish()), IsError(Reason::kBadToken, _));
  grpc::ClientContext other;
  other.AddMetadata("authorization", "Bearer secreT");
  EXPECT_THAT(FromGrpcStatus(stub->Measure(&other)->Finish()), IsError(Reason::kBadToken, _));
  Prober honest(world);
  EXPECT_EQ(honest.Echo().bytes(), 0u);
}

// ---- What it may take ----

TEST(GrpcProbeTest, RefusesMoreThanSixteenAtOnceAndTakesAnotherAfterOneHasEnded) {
  ServerWorld world(Sync(1));
  std::vector<std::unique_ptr<Prober>> probers;
  for (int i = 0; i < 16; ++i) {
    probers.push_back(std::make_unique<Prober>(world));
    probers.back()->Echo();
  }
  EXPECT_THAT(Prober(world).Finish(), IsTooMany("16 probes are under way, the limit"));
  probers.back()->Cancel();
  EXPECT_FALSE(probers.back()->Finish().ok());
  EXPECT_TRUE(world.Await([&world] {
    Prober another(world);
    another.EndWrites();
    return another.Finish().ok();
  }));
}

TEST(GrpcProbeTest, EndsAProbeThatSendsForEver) {
  ServerWorld world(Sync(1), ParametersOnly(3), "", WithProbes(16, absl::Hours(1), 10 << 20));
  Prober prober(world);
  int sent = 0;
  while (prober.SendChunk(ChunkOf(1 << 20))) ++sent;
  EXPECT_GE(sent, 10);
  EXPECT_THAT(prober.Finish(), IsTooMany("has moved 11534336 bytes, expected at most 10485760"));
}

TEST(GrpcProbeTest, EndsAProbeThatAsksForEver) {
  ServerWorld world(Sync(1), ParametersOnly(3), "", WithProbes(16, absl::Hours(1), 100 << 20));
  Prober prober(world);
  ASSERT_TRUE(prober.Ask(64));
  ASSERT_TRUE(prober.Ask(64));
  EXPECT_THAT(prober.Finish(), IsTooMany("has moved 134217728 bytes"));
}

TEST(GrpcProbeTest, EndsAProbeThatIsSilentForAllItsTime) {
  ServerWorld world(Sync(1), ParametersOnly(3), "",
                    WithProbes(16, absl::Milliseconds(50), 1 << 20));
  EXPECT_THAT(Prober(world).Finish(), IsTooMany("has taken 50ms, all its time"));
}

TEST(GrpcProbeTest, EndsAProbeThatNeverReads) {
  ServerWorld world(Sync(1), ParametersOnly(3), "",
                    WithProbes(1, absl::Milliseconds(50), uint64_t{1} << 40));
  Prober deaf(world);
  ASSERT_TRUE(deaf.Ask(64));  // far more than gRPC and the sockets buffer
  // Its place is free again although it has read nothing.
  EXPECT_TRUE(world.Await([&world] {
    Prober another(world);
    another.EndWrites();
    return another.Finish().ok();
  }));
  EXPECT_THAT(deaf.Finish(),
              AnyOf(HasCode(absl::StatusCode::kCancelled, _), IsTooMany("its time")));
}

TEST(GrpcProbeTest, AServerThatGoesDownEndsItsProbes) {
  ServerWorld world(Sync(1));
  Prober idle(world);
  idle.Echo();
  Prober deaf(world);
  ASSERT_TRUE(deaf.Ask(64));
  EXPECT_EQ(deaf.ReadChunk(), 1u << 20);
  world.Stop(kPatience);
  EXPECT_THAT(idle.Finish(), IsError(Reason::kDraining, HasSubstr("is going down")));
  EXPECT_FALSE(deaf.Finish().ok());
}

// ---- Beside a job ----

TEST(GrpcProbeTest, ChangesNothingOfAJobAndKeepsNobodyAlive) {
  ServerWorld world(Sync(2));
  ASSERT_THAT(world.Join("a"), IsOk());
  ASSERT_THAT(world.Join("b"), IsOk());
  ASSERT_THAT(world.Initialize("a", {10, 20, 30}), IsOk());
  Prober prober(world);
  EXPECT_TRUE(prober.SendChunk(ChunkOf(12)));
  ASSERT_TRUE(prober.Ask(1));
  EXPECT_EQ(prober.ReadChunk(), 1u << 20);
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), Accepted(0));
  EXPECT_EQ(prober.Echo().bytes(), 12u);
  EXPECT_THAT(world.Push("b", 0, {3, 4, 5}), Applied(1));
  EXPECT_EQ(world.Pull("b", 1)->values, Values({8, 17, 26}));
  EXPECT_EQ(world.Counters(), "2 received: 2 accepted");
  // A worker that is silent loses its place though a probe of its process goes on.
  world.Silence("b");
  world.Pass(absl::Seconds(11));
  prober.Echo();
  EXPECT_THAT(world.Heartbeat("b"), IsError(Reason::kUnknownSession, _));
  EXPECT_THAT(world.Heartbeat("a"), IsOkAndHolds(1u));
}

}  // namespace
}  // namespace sluice

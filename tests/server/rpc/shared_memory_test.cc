// Gradients and parameters that lie in shared memory, pushed and pulled over real gRPC.

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/shared_memories.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"
#include "worker/connection/shared_parameters.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ShardOptions Sharing(ShardOptions options) {
  options.snapshots = SnapshotMemory::kShared;
  return options;
}

std::shared_ptr<SharedMemory> MemoryOf(uint64_t elements) {
  auto memory = SharedMemory::Create(elements);
  EXPECT_THAT(memory, IsOk());
  return *std::move(memory);
}

// A worker "a" of three parameters, which are 10 at first, and its memory.
class GrpcSharedMemoryTest : public ::testing::Test {
 protected:
  explicit GrpcSharedMemoryTest(const ShardOptions& options = Sharing(Sync(1)))
      : world_(options), memory_(MemoryOf(6)) {}

  // The server's answer to the worker's offer.
  bool JoinWith(const SharedMemoryName& name) {
    v1::JoinRequest request = world_.RequestOf("a");
    *request.mutable_memory() = ToProto(name);
    const auto welcome = world_.JoinAs(request);
    EXPECT_THAT(welcome, IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
    return welcome->shares_memory();
  }

  void Write(const Values& values) {
    std::copy(values.begin(), values.end(), memory_->floats().begin());
  }

  static v1::PushGradientsRequest ChunkAt(uint64_t offset, uint64_t first, uint64_t count) {
    v1::PushGradientsRequest message;
    message.mutable_chunk()->set_offset(offset);
    message.mutable_chunk()->mutable_shared()->set_first(first);
    message.mutable_chunk()->mutable_shared()->set_count(count);
    return message;
  }

  absl::StatusOr<PushOutcome> PushOf(std::vector<v1::PushGradientsRequest> messages) {
    messages.insert(messages.begin(), HeaderOf(world_.NextHeader("a", 0)));
    return world_.SendPush(messages);
  }

  // The latest step, from the server's memory if it may be.
  absl::StatusOr<Pulled> PullShared() {
    v1::PullParamsRequest request;
    request.set_session(world_.session("a"));
    request.set_shared(true);
    return world_.PullAs(request);
  }

  ServerWorld world_;
  const std::shared_ptr<SharedMemory> memory_;
};

TEST_F(GrpcSharedMemoryTest, TakesAGradientFromWhereverItLiesInTheWorkersMemory) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  Write({0, 0, 1, 2, 3, 0});
  EXPECT_THAT(PushOf({ChunkAt(0, 2, 3)}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 8, 7}));
}

TEST_F(GrpcSharedMemoryTest, TakesChunksOfBothKindsInOnePush) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  Write({1, 0, 3});
  EXPECT_THAT(PushOf({ChunkAt(2, 2, 1), GradientOf(1, {2}), ChunkAt(0, 0, 1)}), Applied(1));
  EXPECT_EQ(world_.Pull("a", 1)->values, Values({9, 8, 7}));
}

TEST_F(GrpcSharedMemoryTest, RefusesWhatIsNotInTheMemoryAndCountsIt) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  EXPECT_THAT(PushOf({ChunkAt(0, 4, 3)}), IsError(Reason::kBadChunk, HasSubstr("of the 6")));
  EXPECT_EQ(world_.Counters(), "1 received: 1 rejected");
}

TEST_F(GrpcSharedMemoryTest, RefusesWhatIsNotFiniteInTheMemory) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  Write({0, std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_THAT(PushOf({ChunkAt(0, 0, 3)}), IsError(Reason::kNotFinite, HasSubstr("w[1]")));
}

TEST_F(GrpcSharedMemoryTest, RefusesAReferenceOfAWorkerThatNamedNoMemory) {
  ASSERT_THAT(world_.Join("a"), IsOk());
  ASSERT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
  EXPECT_THAT(PushOf({ChunkAt(0, 0, 3)}), IsError(Reason::kBadChunk, HasSubstr("of the 0")));
}

// The session goes on until its lease ends, but the server has unmapped the memory.
TEST_F(GrpcSharedMemoryTest, APushFromMemoryWhoseSessionsStreamHasEndedIsToldToJoinAgain) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  ASSERT_TRUE(world_.Break("a"));
  EXPECT_THAT(PushOf({ChunkAt(0, 0, 3)}),
              IsError(Reason::kUnknownSession, HasSubstr("stream has ended")));
}

TEST_F(GrpcSharedMemoryTest, DoesNotShareMemoryThatItCannotReach) {
  SharedMemoryName name = memory_->name();
  name.cookie += 1;
  EXPECT_FALSE(JoinWith(name));
  EXPECT_THAT(PushOf({ChunkAt(0, 0, 3)}), IsError(Reason::kBadChunk, HasSubstr("of the 0")));
}

TEST_F(GrpcSharedMemoryTest, SaysWhereParametersLieToThoseThatAsk) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  const auto pulled = PullShared();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_TRUE(pulled->chunks.empty());
  const v1::SharedParameters& where = pulled->header.shared();
  Values read(3);
  SharedParameters reader;
  EXPECT_THAT(reader.Read(FromProto(where.memory()), where.generation(), absl::MakeSpan(read)),
              IsOk());
  EXPECT_THAT(read, ElementsAre(10, 10, 10));
}

TEST_F(GrpcSharedMemoryTest, ParametersThatWereOverwrittenAreNotTakenForThoseOfTheStep) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  const auto pulled = PullShared();
  ASSERT_THAT(pulled, IsOk());
  const v1::SharedParameters& where = pulled->header.shared();
  SharedParameters reader;
  absl::Status read;
  // The memory is used again after some steps: not at once, since the server may still hold it.
  for (uint64_t step = 0; step < 100; ++step) {
    Values values(3);
    read = reader.Read(FromProto(where.memory()), where.generation(), absl::MakeSpan(values));
    if (!read.ok()) break;
    EXPECT_THAT(values, ElementsAre(10, 10, 10));
    ASSERT_THAT(world_.Push("a", step, {1, 1, 1}), Applied(step + 1));
  }
  EXPECT_THAT(read, HasCode(absl::StatusCode::kAborted, HasSubstr("overwritten")));
}

// Memories of this process and of others that this process has mapped.
size_t MappedMemories() {
  std::ifstream maps("/proc/self/maps");
  size_t mapped = 0;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "/memfd:sluice")) ++mapped;
  }
  return mapped;
}

TEST_F(GrpcSharedMemoryTest, UnmapsAWorkersMemoryOnceItsSessionHasEnded) {
  ASSERT_TRUE(JoinWith(memory_->name()));
  const size_t mapped = MappedMemories();
  ASSERT_TRUE(world_.Break("a"));
  EXPECT_TRUE(world_.Await([mapped] { return MappedMemories() == mapped - 1; }));
}

TEST(SharedParametersTest, KeepsOnlyTheLatestOfTheServersMemoriesMapped) {
  std::vector<std::shared_ptr<SharedMemory>> memories;
  for (int i = 0; i < 6; ++i) memories.push_back(MemoryOf(3));
  const size_t mapped = MappedMemories();
  SharedParameters reader;
  Values values(3);
  for (const auto& memory : memories) {
    ASSERT_THAT(reader.Read(memory->name(), memory->generation(), absl::MakeSpan(values)), IsOk());
  }
  EXPECT_EQ(MappedMemories(), mapped + 4);
}

class GrpcPrivateMemoryTest : public GrpcSharedMemoryTest {
 protected:
  GrpcPrivateMemoryTest() : GrpcSharedMemoryTest(Sync(1)) {}
};

TEST_F(GrpcPrivateMemoryTest, AServerThatIsToldNotToSharesNothing) {
  EXPECT_FALSE(JoinWith(memory_->name()));
  const auto pulled = PullShared();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_FALSE(pulled->header.has_shared());
  EXPECT_EQ(pulled->values, Values({10, 10, 10}));
}

// ---- The worker's connection ----

TEST(SharedConnectionTest, PushesAndPullsThroughSharedMemory) {
  constexpr uint32_t kSize = 1'000'000;
  ServerWorld world(Sharing(Sync(1)), ParametersOnly(kSize));
  const auto connection = ConnectTo(world.address().ToString());
  const auto memory = MemoryOf(kSize);
  JoinRequest join = WorkerRequest("a", kSize);
  join.memory = memory;
  const auto welcome = connection->Join(join);
  ASSERT_THAT(welcome, IsOk());
  ASSERT_THAT(connection->Initialize(welcome->session, Values(kSize, 10)), IsOk());
  for (uint64_t step = 0; step < 5; ++step) {
    std::fill(memory->floats().begin(), memory->floats().end(), static_cast<float>(step));
    PushHeader header;
    header.session = welcome->session;
    header.sequence = Sequence(step + 1);
    header.step = Step(step);
    header.incarnation = welcome->incarnation;
    PullRequest request;
    request.session = welcome->session;
    request.after = header.sequence;
    auto pull = connection->StartPull(request);
    EXPECT_THAT(PushThrough(*connection, header, {memory->floats(), memory}), Applied(step + 1));
    Values pulled(kSize);
    ASSERT_THAT(pull->Read(absl::MakeSpan(pulled)), IsOk());
    const float sum = static_cast<float>(step * (step + 1)) / 2;
    EXPECT_THAT(pulled, ::testing::Each(10 - sum));
  }
}

// As one of several servers, at which the worker has not joined, would answer it.
class OfferedMemoryTest : public ::testing::Test {
 protected:
  OfferedMemoryTest() {
    JoinRequest join = WorkerRequest("a", kSize);
    join.memory = memory_;
    const auto welcome = joined_->Join(join);
    EXPECT_THAT(welcome, IsOk());
    session_ = welcome->session;
    EXPECT_THAT(joined_->Initialize(session_, Values(kSize, 10)), IsOk());
    other_->BeginSession(session_, memory_->floats().size(), memory_);
  }

  std::unique_ptr<PendingPull> StartPull() {
    PullRequest request;
    request.session = session_;
    return other_->StartPull(request);
  }

  void Push(uint64_t step) {
    PushHeader header;
    header.session = session_;
    header.sequence = Sequence(step + 1);
    header.step = Step(step);
    header.incarnation = Incarnation(world_.shard().Describe().incarnation);
    EXPECT_THAT(PushThrough(*joined_, header, {memory_->floats(), memory_}), Applied(step + 1));
  }

  uint64_t Sent() { return world_.shard().store().wire_bytes().sent(); }

  static constexpr uint32_t kSize = 1'000'000;
  ServerWorld world_{Sharing(Sync(1)), ParametersOnly(kSize)};
  const std::shared_ptr<SharedMemory> memory_ = MemoryOf(kSize);
  const std::unique_ptr<ServerConnection> joined_ = ConnectTo(world_.address().ToString());
  const std::unique_ptr<ServerConnection> other_ = ConnectTo(world_.address().ToString());
  SessionId session_;
  Values pulled_ = Values(kSize);
};

TEST_F(OfferedMemoryTest, IsUsedOnceThatServerSaysThatItReadsIt) {
  EXPECT_FALSE(other_->stays_on_machine());
  ASSERT_THAT(StartPull()->Read(absl::MakeSpan(pulled_)), IsOk());
  EXPECT_TRUE(other_->stays_on_machine());
  const uint64_t sent = Sent();
  ASSERT_THAT(StartPull()->Read(absl::MakeSpan(pulled_)), IsOk());
  EXPECT_THAT(pulled_, ::testing::Each(10));
  EXPECT_LT(Sent() - sent, 1000);
}

// A pull of several servers has a number, and cannot be repeated at one of them.
TEST_F(OfferedMemoryTest, APullWhoseParametersWereOverwrittenIsToBeMadeAgain) {
  ASSERT_THAT(StartPull()->Read(absl::MakeSpan(pulled_)), IsOk());
  const uint64_t sent = Sent();
  const auto pull = StartPull();
  ASSERT_TRUE(world_.Await([&] { return Sent() > sent; }));
  for (uint64_t step = 0; step < 100; ++step) Push(step);
  EXPECT_THAT(pull->Read(absl::MakeSpan(pulled_)), HasCode(absl::StatusCode::kDeadlineExceeded, _));
  EXPECT_TRUE(pull->wrote());
  EXPECT_THAT(StartPull()->Read(absl::MakeSpan(pulled_)), IsOk());
  EXPECT_THAT(pulled_, ::testing::Each(10));
  EXPECT_TRUE(other_->stays_on_machine());
}

}  // namespace
}  // namespace sluice

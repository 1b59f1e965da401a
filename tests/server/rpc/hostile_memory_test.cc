// Peers that try to make the server hold memory, over real gRPC: what they get is bounded, and
// honest workers train on.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/encoding.h"
#include "common/wire/encoding.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/access/pull_limits.h"
#include "server/rpc/snapshot_chunks.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// ---- Offers of initial parameters ----

// Workers "a" to "d" of a server that has no parameters yet.
class HostileOffersTest : public ::testing::Test {
 protected:
  HostileOffersTest() : world_(Sync(4), ParametersOnly(kElements)) {
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_THAT(world_.Join(name), IsOk());
  }

  static constexpr size_t kElements = 1000;

  // An offer that has its turn, and of which one element is missing.
  std::unique_ptr<InitializeStream> OpenStalled(const std::string& name) {
    auto offer = Open(name);
    const auto chunk = ParametersOf(0, Values(kElements - 1, 1));
    offer->Write(chunk);
    EXPECT_TRUE(world_.Await([&] { return Received() == expected_ + chunk.ByteSizeLong(); }));
    expected_ += chunk.ByteSizeLong();
    return offer;
  }

  // A whole offer whose header the server has read. All its parameters are `value`.
  std::unique_ptr<InitializeStream> OpenWhole(const std::string& name, float value) {
    auto offer = Open(name);
    offer->Write(ParametersOf(0, Values(kElements, value)));
    offer->End();
    return offer;
  }

  std::unique_ptr<InitializeStream> Open(const std::string& name) {
    auto offer = world_.OpenInitialize();
    const auto header = HeaderOf(world_.session(name));
    offer->Write(header);
    expected_ += header.ByteSizeLong();
    EXPECT_TRUE(world_.Await([&] { return Received() == expected_; }));
    return offer;
  }

  // Whether an offer of this worker may wait. It does so for a moment.
  bool MayWait(const std::string& name) {
    const auto context = world_.Context(absl::Milliseconds(100));
    v1::InitializeParamsResponse response;
    const auto offer = world_.stub().InitializeParams(context.get(), &response);
    offer->Write(HeaderOf(world_.session(name)));
    return offer->Finish().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  uint64_t Received() { return world_.shard().Describe().traffic.wire_bytes_received; }

  ServerWorld world_;
  uint64_t expected_ = 0;  // bytes of messages that the server has read
};

TEST_F(HostileOffersTest, OneIsReceivedAtATime) {
  const auto first = OpenStalled("a");
  std::vector<std::unique_ptr<InitializeStream>> others;
  for (const char* name : {"b", "c", "d"}) others.push_back(OpenWhole(name, 2));
  first->Write(ParametersOf(kElements - 1, {1}));
  first->End();
  const auto accepted = first->Answer();
  ASSERT_THAT(accepted, IsOk());
  EXPECT_TRUE(accepted->accepted());
  for (const auto& offer : others) {
    const auto answer = offer->Answer();
    ASSERT_THAT(answer, IsOk());
    EXPECT_FALSE(answer->accepted());
  }
  // Of the others, nothing but their headers was read.
  const uint64_t last = ParametersOf(kElements - 1, {1}).ByteSizeLong();
  EXPECT_EQ(Received(), expected_ + last);
  EXPECT_EQ(world_.Pull("a", 0)->values, Values(kElements, 1));
}

TEST_F(HostileOffersTest, TheNextTakesOverIfOneFails) {
  const auto first = OpenStalled("a");
  const auto next = OpenWhole("b", 2);
  first->Cancel();
  EXPECT_THAT(first->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  EXPECT_TRUE(next->Answer()->accepted());
  EXPECT_EQ(world_.Pull("a", 0)->values, Values(kElements, 2));
}

TEST_F(HostileOffersTest, TheNextTakesOverIfASessionEndsInTheMiddle) {
  const auto first = OpenStalled("a");
  const auto next = OpenWhole("b", 2);
  EXPECT_THAT(world_.Evict("a"), IsOk());
  EXPECT_THAT(first->Answer(),
              IsError(Reason::kUnknownSession, HasSubstr("join again and repeat the offer")));
  EXPECT_TRUE(next->Answer()->accepted());
  EXPECT_EQ(world_.Pull("b", 0)->values, Values(kElements, 2));
}

TEST_F(HostileOffersTest, OneThatWaitsIsForgottenWhenItIsCancelled) {
  const auto first = OpenStalled("a");
  const auto waiting = OpenWhole("b", 2);
  const auto next = OpenWhole("c", 3);
  waiting->Cancel();
  EXPECT_THAT(waiting->Answer(), HasCode(absl::StatusCode::kCancelled, _));
  first->Cancel();
  EXPECT_TRUE(next->Answer()->accepted());
  EXPECT_EQ(world_.Pull("a", 0)->values, Values(kElements, 3));
}

TEST_F(HostileOffersTest, OneThatIsCancelledAsItBeginsToWaitIsForgotten) {
  const auto first = OpenStalled("a");
  for (int i = 0; i < 100; ++i) {
    const auto evil = world_.OpenInitialize();
    evil->Write(HeaderOf(world_.session("b")));
    evil->Cancel();
    // Refused if the server has not noticed yet that two others have gone.
    EXPECT_THAT(evil->Answer(), AnyOf(HasCode(absl::StatusCode::kCancelled, _),
                                      IsError(Reason::kBadArgument, HasSubstr("has 2 offers"))));
  }
  EXPECT_TRUE(world_.Await([this] { return MayWait("b"); }));
  first->Cancel();
}

TEST_F(HostileOffersTest, ASessionThatEndsAsItsTurnComesLeavesTheQueueSound) {
  for (int i = 0; i < 50; ++i) {
    const std::string name = absl::StrCat("e", i);
    ASSERT_THAT(world_.Join(name), IsOk());
    auto first = world_.OpenInitialize();
    first->Write(HeaderOf(world_.session("a")));
    auto next = world_.OpenInitialize();
    next->Write(HeaderOf(world_.session(name)));
    first->Cancel();  // gives the turn to `next` while its session ends
    EXPECT_THAT(world_.Evict(name), IsOk());
    next->Answer().IgnoreError();
  }
  const auto honest = world_.OpenInitialize();  // headers of the first offers may still arrive
  honest->Write(HeaderOf(world_.session("c")));
  honest->Write(ParametersOf(0, Values(kElements, 3)));
  honest->End();
  EXPECT_TRUE(honest->Answer()->accepted());
}

TEST_F(HostileOffersTest, ASessionHasTwoAtMost) {
  const auto first = OpenStalled("a");
  const auto second = OpenWhole("a", 2);
  EXPECT_THAT(Open("a")->Answer(), IsError(Reason::kBadArgument, HasSubstr("has 2 offers")));
  first->Cancel();
  EXPECT_TRUE(second->Answer()->accepted());
}

// ---- Pulls that are not read ----

// A pull of which nothing is read after the first chunk, on a connection of its own.
class StalledPull {
 public:
  StalledPull(const ServerWorld& world, uint64_t session) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    own.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // its window stays small
    stub_ = v1::ParameterServer::NewStub(grpc::CreateCustomChannel(
        world.address().ToString(), grpc::InsecureChannelCredentials(), own));
    context_ = world.Context();
    v1::PullParamsRequest request;
    request.set_session(session);
    reader_ = stub_->PullParams(context_.get(), request);
  }

  // The step in its header; absent if it has ended.
  absl::optional<uint64_t> Step() {
    v1::PullParamsResponse message;
    if (!reader_->Read(&message)) return absl::nullopt;
    const uint64_t step = message.header().step();
    EXPECT_TRUE(reader_->Read(&message) && message.has_chunk());
    return step;
  }
  absl::Status End() {
    v1::PullParamsResponse message;
    while (reader_->Read(&message)) {
    }
    return FromGrpcStatus(reader_->Finish());
  }
  void Cancel() { context_->TryCancel(); }

 private:
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::PullParamsResponse>> reader_;
};

// Workers "w0" to "w7" of a model of 16 MiB, which is more than the network holds. Each step is
// made past gRPC.
class HostilePullsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 16 * kChunkElements;

  HostilePullsTest() : world_(Async(1), ParametersOnly(kSize)) {
    for (int i = 0; i < 8; ++i) EXPECT_THAT(world_.Join(absl::StrCat("w", i)), IsOk());
    auto start = world_.shard().store().BeginInitialize(SessionId(world_.session("w0")));
    EXPECT_THAT(start->parameters->Add(ChunkOf(0, Values(kSize, 10))), IsOk());
    EXPECT_THAT(FinishOffer(world_.shard(), std::move(start->parameters)), IsOk());
    snapshots_.push_back(world_.shard().store().stripe().latest());
  }

  void MakeStep() {
    const uint64_t step = snapshots_.size() - 1;
    world_.shard().store().BeginPush(
        FromProto(world_.NextHeader("w7", step)), [this](absl::StatusOr<PushStart> start) {
          EXPECT_THAT(start->push->Add(ChunkOf(0, Values(kSize, 1))), IsOk());
          world_.shard().store().FinishPush(std::move(start->push), [](const auto&) {});
        });
    snapshots_.push_back(world_.shard().store().stripe().latest());
    EXPECT_EQ(world_.shard().Describe().step, Step(step + 1));
  }

  // Starts a pull of the latest step, which is not read on.
  StalledPull& Stall(const std::string& name) {
    pulls_.push_back(std::make_unique<StalledPull>(world_, world_.session(name)));
    return *pulls_.back();
  }

  // Stalls pulls of as many steps as workers may hold, then one more, which waits.
  StalledPull& StallOneTooMany() {
    for (uint64_t i = 0; i < PullLimits::kStepsOfWorkers; ++i) {
      EXPECT_EQ(Stall(absl::StrCat("w", i)).Step(), i);
      MakeStep();
    }
    const uint64_t sent = world_.shard().Describe().traffic.bytes_sent;
    StalledPull& late = Stall("w5");
    EXPECT_TRUE(world_.Await([&] { return world_.shard().Describe().traffic.bytes_sent > sent; }));
    return late;
  }

  size_t StepsInMemory() const {
    size_t steps = 0;
    for (const auto& snapshot : snapshots_) steps += snapshot.expired() ? 0 : 1;
    return steps;
  }

  ServerWorld world_;
  std::vector<std::weak_ptr<const Snapshot>> snapshots_;
  std::vector<std::unique_ptr<StalledPull>> pulls_;
};

TEST_F(HostilePullsTest, OfObserversKeepFewSteps) {
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("o", i);
    ASSERT_THAT(world_.Observe(name), IsOk());
    EXPECT_EQ(Stall(name).Step(), static_cast<uint64_t>(i));
    MakeStep();
  }
  EXPECT_TRUE(world_.Await([&] { return StepsInMemory() == PullLimits::kStepsOfObservers + 1; }));
  // The two newest are whole, and the others were ended.
  EXPECT_THAT(pulls_[7]->End(), IsOk());
  EXPECT_THAT(pulls_[6]->End(), IsOk());
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(pulls_[i]->End(), HasCode(absl::StatusCode::kCancelled, _)) << i;
  }
}

TEST_F(HostilePullsTest, OfOneObserverAreFew) {
  ASSERT_THAT(world_.Observe("o"), IsOk());
  for (size_t i = 0; i < PullLimits::kMostOfObserver; ++i) EXPECT_EQ(Stall("o").Step(), 0u);
  EXPECT_THAT(Stall("o").End(), IsError(Reason::kTooManyPulls, HasSubstr("read those first")));
}

TEST_F(HostilePullsTest, OfWorkersKeepFewStepsAndTheNextWaitsForTheNewest) {
  StalledPull& late = StallOneTooMany();
  MakeStep();
  EXPECT_TRUE(world_.Await([&] { return StepsInMemory() == PullLimits::kStepsOfWorkers + 1; }));
  pulls_[0]->Cancel();
  EXPECT_EQ(late.Step(), PullLimits::kStepsOfWorkers + 1);
  EXPECT_THAT(late.End(), IsOk());
}

TEST_F(HostilePullsTest, OneThatWaitsForAStepMayBeCancelled) {
  StalledPull& late = StallOneTooMany();
  late.Cancel();
  EXPECT_THAT(late.End(), HasCode(absl::StatusCode::kCancelled, _));
}

TEST(HostileInconsistentPullsTest, KeepNoStep) {
  ShardOptions options = Async(1);
  options.consistency.inconsistent_reads = true;
  constexpr uint32_t kSize = 16 * kChunkElements;
  ServerWorld world(options, ParametersOnly(kSize));
  ASSERT_THAT(world.Join("a"), IsOk());
  auto start = world.shard().store().BeginInitialize(SessionId(world.session("a")));
  EXPECT_THAT(start->parameters->Add(ChunkOf(0, Values(kSize, 10))), IsOk());
  EXPECT_THAT(FinishOffer(world.shard(), std::move(start->parameters)), IsOk());
  StalledPull pull(world, world.session("a"));
  EXPECT_EQ(pull.Step(), 0u);
  const std::weak_ptr<const Snapshot> first = world.shard().store().stripe().latest();
  world.shard().store().BeginPush(
      FromProto(world.NextHeader("a", 0)), [&world](absl::StatusOr<PushStart> begun) {
        EXPECT_THAT(begun->push->Add(ChunkOf(0, Values(kSize, 1))), IsOk());
        world.shard().store().FinishPush(std::move(begun->push), [](const auto&) {});
      });
  // The pull holds it only while it copies a chunk.
  EXPECT_TRUE(world.Await([&first] { return first.expired(); }));
  EXPECT_THAT(pull.End(), IsOk());
}

// ---- Encodings ----

class HostileEncodingsTest : public ::testing::Test {
 protected:
  HostileEncodingsTest() {
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {1, 2, 3}), IsOk());
  }

  // Pulls with float16 at this level of compression, of which each is another encoding.
  absl::Status Pull(const std::string& name, int level) {
    v1::PullParamsRequest request;
    request.set_session(world_.session(name));
    *request.mutable_encoding() = ToProto(*ParseEncoding("float16/zstd"));
    request.mutable_encoding()->set_level(level);
    const auto context = world_.Context();
    const auto reader = world_.stub().PullParams(context.get(), request);
    v1::PullParamsResponse message;
    while (reader->Read(&message)) {
    }
    return FromGrpcStatus(reader->Finish());
  }

  ServerWorld world_{Sync(1)};
};

TEST_F(HostileEncodingsTest, OfOneSessionAreOneAtATime) {
  ASSERT_THAT(world_.Observe("o"), IsOk());
  for (int level = 1; level <= 19; ++level) EXPECT_THAT(Pull("o", level), IsOk());
  for (int level = 1; level <= 3; ++level) {
    const std::string name = absl::StrCat("w", level);
    ASSERT_THAT(world_.Join(name), IsOk());
    EXPECT_THAT(Pull(name, level), IsOk());
  }
  EXPECT_THAT(Pull("a", 4),
              IsError(Reason::kBadArgument, HasSubstr("in 4 encodings already; ask for one")));
  EXPECT_THAT(Pull("a", 19), IsOk());
}

TEST_F(HostileEncodingsTest, AreFreeAgainWhenTheirSessionsHaveEnded) {
  for (int level = 1; level <= 4; ++level) {
    const std::string name = absl::StrCat("o", level);
    ASSERT_THAT(world_.Observe(name), IsOk());
    EXPECT_THAT(Pull(name, level), IsOk());
  }
  EXPECT_THAT(Pull("a", 5), IsError(Reason::kBadArgument, _));
  EXPECT_TRUE(world_.Break("o3"));
  EXPECT_TRUE(world_.Await([&] { return Pull("a", 5).ok(); }));
}

}  // namespace
}  // namespace sluice

// Requests to join in several messages, over real gRPC: large layouts are let in, and peers that
// send wrong parts, or stop between them, take a bounded part of the server for a bounded time.

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/join.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/trained_server_test.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kJoinInParts[] = "/sluice.v1.ParameterServer/JoinInParts";

// A stub with a connection of its own.
std::unique_ptr<v1::ParameterServer::Stub> Connect(const ServerWorld& world) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::ParameterServer::NewStub(grpc::CreateCustomChannel(
      world.address().ToString(), grpc::InsecureChannelCredentials(), own));
}

// A call of JoinInParts that lasts as long as the object; on its own connection, or on `stub`'s.
class PartsCall {
 public:
  explicit PartsCall(ServerWorld& world) : PartsCall(world, Connect(world)) {}
  PartsCall(ServerWorld& world, std::shared_ptr<v1::ParameterServer::Stub> stub)
      : stub_(std::move(stub)),
        context_(world.Context()),
        stream_(stub_->JoinInParts(context_.get())) {}
  ~PartsCall() {
    context_->TryCancel();
    if (!ended_) stream_->Finish();
  }

  PartsCall& Write(const v1::JoinRequest& part) {
    stream_->Write(part);  // false if the server has answered already
    return *this;
  }
  void End() { stream_->WritesDone(); }
  void Cancel() { context_->TryCancel(); }

  // OUT_OF_RANGE after the last event of a call that ended in good order.
  absl::StatusOr<v1::JoinEvent> Next() {
    v1::JoinEvent event;
    if (stream_->Read(&event)) return event;
    ended_ = true;
    const absl::Status end = FromGrpcStatus(stream_->Finish());
    return end.ok() ? absl::OutOfRangeError("no more events") : end;
  }
  absl::StatusOr<v1::Welcome> Welcome() {
    const auto event = Next();
    if (!event.ok()) return event.status();
    return event->welcome();
  }

 private:
  const std::shared_ptr<v1::ParameterServer::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::JoinRequest, v1::JoinEvent>> stream_;
  bool ended_ = false;
};

// ---- Who is let in ----

TEST(JoinInPartsTest, TakesAHundredThousandTensorsAndComparesThem) {
  const Layout layout = ManyTensors(100000);
  ServerWorld world(Sync(2), layout);
  const std::vector<v1::JoinRequest> parts = SplitJoin(world.RequestOf("a"));
  EXPECT_GT(parts.size(), 5u);
  PartsCall a(world);
  for (const v1::JoinRequest& part : parts) a.Write(part);
  const auto welcome = a.Welcome();
  ASSERT_THAT(welcome, IsOk());
  EXPECT_EQ(welcome->index(), 0u);
  EXPECT_EQ(welcome->step(), 0u);
  EXPECT_EQ(world.shard().layout()->ranges(), layout.ranges());

  v1::JoinRequest other = world.RequestOf("b");
  other.mutable_layout()->mutable_ranges(99999)->set_name("other");
  PartsCall b(world);
  for (const v1::JoinRequest& part : SplitJoin(other)) b.Write(part);
  EXPECT_THAT(b.Welcome(),
              IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("tensor 99999 is \"other\" [2]"),
                                                     HasSubstr("the job's is \"99999...."))));
}

TEST(JoinInPartsTest, TakesARequestOfOnePartAndAnswersItBeforeTheCallerEnds) {
  ServerWorld world(Sync(1));
  PartsCall call(world);
  EXPECT_THAT(call.Write(world.RequestOf("a")).Welcome(), IsOk());
}

TEST(JoinInPartsTest, ReadsNothingAfterTheLastPart) {
  ServerWorld world(Sync(1));
  PartsCall call(world);
  call.Write(world.RequestOf("a")).Write(world.RequestOf("b"));
  call.End();
  ASSERT_THAT(call.Welcome(), IsOk());
  EXPECT_THAT(world.Evict("a"), IsOk());
  EXPECT_TRUE(call.Next()->has_evicted());
  EXPECT_THAT(call.Next(), HasCode(absl::StatusCode::kOutOfRange, _));
}

TEST(JoinInPartsTest, TheSessionIsLostWhenTheCallBreaks) {
  ServerWorld world(Sync(1));
  PartsCall call(world);
  ASSERT_THAT(call.Write(world.RequestOf("a")).Welcome(), IsOk());
  call.Cancel();
  EXPECT_TRUE(
      world.Await([&world] { return world.shard().Sessions()[0].presence == Presence::kLost; }));
}

// ---- Wrong parts ----

// A worker "a" trains conv.weight and fc.bias.
class WrongPartsTest : public TrainedServerTest {
 protected:
  // The request of an honest "b" as three parts: one tensor each in the first two, the third for a
  // test to fill.
  std::vector<v1::JoinRequest> Parts() {
    v1::JoinRequest first = world_.RequestOf("b");
    v1::JoinRequest second;
    *second.mutable_layout()->add_ranges() = first.layout().ranges(1);
    first.mutable_layout()->mutable_ranges()->RemoveLast();
    first.set_more(true);
    return {first, second};
  }

  absl::Status AnswerTo(const std::vector<v1::JoinRequest>& parts) {
    PartsCall call(world_);
    for (const v1::JoinRequest& part : parts) call.Write(part);
    call.End();
    return call.Welcome().status();
  }
};

TEST_F(WrongPartsTest, HonestOnesAreLetIn) {
  EXPECT_THAT(AnswerTo(Parts()), IsOk());
  EXPECT_THAT(world_.Evict("b"), IsOk());
}

TEST_F(WrongPartsTest, OutOfOrder) {
  auto parts = Parts();
  parts[0].mutable_layout()->mutable_ranges()->Swap(parts[1].mutable_layout()->mutable_ranges());
  EXPECT_THAT(AnswerTo(parts),
              IsError(Reason::kBadLayout, HasSubstr("it starts at 4, expected 0")));
  EXPECT_THAT(AnswerTo({Parts()[1], Parts()[0]}),
              IsError(Reason::kBadArgument, HasSubstr("field role is 0")));
}

TEST_F(WrongPartsTest, ANameTwiceInDifferentParts) {
  auto parts = Parts();
  parts[1].mutable_layout()->mutable_ranges(0)->set_name("conv.weight");
  EXPECT_THAT(AnswerTo(parts), IsError(Reason::kBadLayout,
                                       HasSubstr("range 1 of the layout (\"conv.weight\"): another "
                                                 "range has the same name")));
}

TEST_F(WrongPartsTest, TwoFirstParts) {
  EXPECT_THAT(AnswerTo({Parts()[0], Parts()[0]}),
              IsError(Reason::kBadArgument, HasSubstr("part 2 of the request to join has the field "
                                                      "job_id")));
}

TEST_F(WrongPartsTest, TooManyTensors) {
  std::vector<v1::JoinRequest> parts = {Parts()[0]};
  for (int i = 0; i < 3; ++i) {
    v1::JoinRequest& part = parts.emplace_back();
    for (int j = 0; j < 400000; ++j) part.mutable_layout()->add_ranges();
    part.set_more(true);
  }
  EXPECT_THAT(AnswerTo(parts),
              IsError(Reason::kBadLayout, HasSubstr("the layout has 1200001 ranges or more")));
}

TEST_F(WrongPartsTest, TooManyBytes) {
  std::vector<v1::JoinRequest> parts = {Parts()[0]};
  for (int i = 0; i < 17; ++i) {
    v1::JoinRequest& part = parts.emplace_back();
    part.mutable_layout()->add_ranges()->set_name(std::string((4 << 20) - 20, 'n'));
    part.set_more(true);
  }
  EXPECT_THAT(AnswerTo(parts),
              IsError(Reason::kBadArgument, HasSubstr("expected at most 67108864")));
}

TEST_F(WrongPartsTest, AnEndBeforeTheLastPart) {
  EXPECT_THAT(AnswerTo({Parts()[0]}),
              IsError(Reason::kBadArgument, HasSubstr("ends after 1 parts, expected another")));
  EXPECT_THAT(AnswerTo({}), IsError(Reason::kBadArgument,
                                    HasSubstr("ends after 0 parts, expected at least one")));
}

TEST_F(WrongPartsTest, NoMessageAtAll) {
  const auto channel =
      grpc::CreateChannel(world_.address().ToString(), grpc::InsecureChannelCredentials());
  EXPECT_THAT(
      CallOnce(channel, kJoinInParts, "\xff"),
      IsError(Reason::kBadArgument, HasSubstr("a part of the request is not a valid JoinRequest")));
}

// ---- Peers that stop ----

v1::JoinRequest HalfOf(ServerWorld& world) {
  v1::JoinRequest half = world.RequestOf("half");
  half.set_more(true);
  return half;
}

TEST_F(WrongPartsTest, OneThatBreaksOffHalfWayLeavesNoTrace) {
  ServerWorld world(Sync(1), LayoutOf({{"conv.weight", 4}, {"fc.bias", 3}}));
  {
    PartsCall half(world);
    half.Write(Parts()[0]);
  }
  EXPECT_THAT(world.Join("a"), IsOk());
  EXPECT_EQ(world.shard().Describe().tensors, 2u);
}

TEST(StalledPartsTest, LoseTheirTurnWhenTheirTimeIsOver) {
  RpcLimits limits;
  limits.request = absl::Seconds(3);
  ServerWorld world(Sync(1), ParametersOnly(3), "", limits);
  const v1::JoinRequest half = HalfOf(world);
  std::vector<std::unique_ptr<PartsCall>> stalled;
  for (int i = 0; i < 2; ++i) {
    stalled.push_back(std::make_unique<PartsCall>(world));
    if (i % 2 == 0) stalled.back()->Write(half);
  }
  PartsCall honest(world);
  EXPECT_THAT(honest.Write(world.RequestOf("a")).Welcome(), IsOk());
  for (size_t i = 0; i < stalled.size(); ++i) {
    const absl::Status end = stalled[i]->Welcome().status();
    EXPECT_THAT(end, HasCode(absl::StatusCode::kUnavailable,
                             HasSubstr("the request to join was not complete within 3s: ")));
    EXPECT_THAT(end, HasCode(absl::StatusCode::kUnavailable,
                             HasSubstr(i % 2 == 0 ? ": 1 parts with " : ": 0 parts with 0 bytes")));
    EXPECT_EQ(ReasonOf(end), Reason::kNone);
  }
}

TEST(StalledPartsTest, WaitWithoutBeingReadUntilOthersAreGone) {
  ServerWorld world(Sync(1));
  const v1::JoinRequest half = HalfOf(world);
  std::vector<std::unique_ptr<PartsCall>> stalled;
  for (int i = 0; i < 6; ++i) {
    stalled.push_back(std::make_unique<PartsCall>(world));
    stalled.back()->Write(half);
  }
  PartsCall honest(world);
  honest.Write(world.RequestOf("a"));
  for (const auto& call : stalled) call->Cancel();
  EXPECT_THAT(honest.Welcome(), IsOk());
}

// ---- Many calls ----

TEST(CrowdedPartsTest, AConnectionHasTwoCallsAtMost) {
  ServerWorld world(Sync(1));
  const std::shared_ptr<v1::ParameterServer::Stub> stub = Connect(world);
  // The server may hear of the three in any order.
  std::vector<std::unique_ptr<PartsCall>> calls;
  std::vector<std::future<absl::Status>> ends;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(std::make_unique<PartsCall>(world, stub));
    calls.back()->Write(HalfOf(world));
    PartsCall& call = *calls.back();
    ends.push_back(std::async(std::launch::async, [&call] { return call.Welcome().status(); }));
  }
  auto refused = ends.end();
  ASSERT_TRUE(world.Await([&] {
    refused = std::find_if(ends.begin(), ends.end(), [](const auto& end) {
      return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    return refused != ends.end();
  }));
  EXPECT_THAT(
      refused->get(),
      HasCode(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("the connection ipv4:127.0.0.1:"),
                    HasSubstr(" has 2 requests to join in parts, which are answered first"))));
  for (const auto& call : calls) call->Cancel();
  EXPECT_TRUE(world.Await([&] {
    PartsCall again(world, stub);
    return again.Write(world.RequestOf("a")).Welcome().ok();
  }));
}

TEST(CrowdedPartsTest, CallsThatAreCancelledAsTheirTurnComesLeaveTheQueueSound) {
  ServerWorld world(Sync(1));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<PartsCall>> calls;
    for (int i = 0; i < 4; ++i) {
      calls.push_back(std::make_unique<PartsCall>(world));
      calls.back()->Write(HalfOf(world));
    }
    // Each end gives a turn to one that is being cancelled.
    for (const auto& call : calls) call->Cancel();
  }
  PartsCall honest(world);
  EXPECT_THAT(honest.Write(world.RequestOf("a")).Welcome(), IsOk());
}

}  // namespace
}  // namespace sluice

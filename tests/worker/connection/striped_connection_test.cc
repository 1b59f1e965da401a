// What is sent to which of several servers, and how a call ends of which one stream fails.

#include "worker/connection/striped_connection.h"

#include <array>
#include <atomic>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/worker/connection/fake_server.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kDeadlineExceeded = absl::StatusCode::kDeadlineExceeded;
constexpr auto kInternal = absl::StatusCode::kInternal;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr uint32_t kServers = 3;
constexpr absl::Duration kPatience = absl::Hours(1);

Values Counting(uint64_t size) {
  Values values(size);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// A connection to three servers.
class StripedConnectionTest : public ::testing::Test {
 protected:
  StripedConnectionTest() {
    for (uint32_t i = 0; i < kServers; ++i) {
      addresses_.push_back(absl::StrCat("host:", i));
      servers_[i].outcome.disposition = i == 0 ? Disposition::kAccepted : Disposition::kPartTaken;
      servers_[i].header.step = Step(7);
      servers_[i].header.incarnation = Incarnation(1);
    }
    servers_[0].welcome.servers = addresses_;
  }

  absl::StatusOr<Welcome> Join(uint32_t size, absl::Duration patience = kPatience) {
    stripes_ = Stripes(size, kServers);
    connection_ = MakeStripedConnection(
        std::make_unique<FakeConnection>(servers_[0]),
        [this](const std::string& address) { return Dial(address); }, patience);
    return JoinAgain();
  }

  absl::StatusOr<Welcome> JoinAgain() {
    TableSpec table;
    table.name = "items";
    table.width = 1;
    const Layout vector = ParametersOnly(static_cast<uint32_t>(stripes_.size()));
    JoinRequest request;
    request.layout = *Layout::Create(vector.ranges(), {table});
    return connection_->Join(request);
  }

  absl::StatusOr<std::unique_ptr<ServerConnection>> Dial(const std::string& address) {
    dialed_.push_back(address);
    if (address == unreachable_) return absl::UnavailableError("nobody listens");
    const uint32_t server = static_cast<uint32_t>(address.back() - '0');
    return std::unique_ptr<ServerConnection>(std::make_unique<FakeConnection>(servers_[server]));
  }

  std::unique_ptr<OutgoingPush> StartPush() {
    return connection_->StartPush(PushHeader(), stripes_.size(), BatchIs::kInHeader);
  }

  absl::StatusOr<PushOutcome> Push(const Values& gradient) {
    const auto push = StartPush();
    push->Send(0, Share(gradient));
    return push->Finish({});
  }

  absl::StatusOr<PullHeader> Pull() {
    pulled_ = Values(stripes_.size(), -1);
    const auto pull = connection_->StartPull(PullRequest());
    auto header = pull->Read(absl::MakeSpan(pulled_));
    wrote_ = pull->wrote();
    transfer_ = pull->transfer();
    return header;
  }

  // The end of a call that gets to that phase.
  absl::Status Meet(CallPhase phase) {
    if (phase == CallPhase::kRead) return Pull().status();
    const Values vector = Counting(stripes_.size());
    if (phase == CallPhase::kOffer) return connection_->Initialize(SessionId(1), vector).status();
    return Push(vector).status();
  }

  // What was received, put together again.
  Values Joined() const {
    Values values(stripes_.size());
    for (uint32_t i = 0; i < kServers; ++i) {
      for (uint64_t k = 0; k < servers_[i].received.size(); ++k) {
        values[stripes_.InVector(i, k)] = servers_[i].received[k];
      }
    }
    return values;
  }

  void OfferForPull(const Values& vector) {
    for (uint32_t i = 0; i < kServers; ++i) {
      const StripeSpan<const float> span(stripes_, i, 0, vector);
      servers_[i].parameters.resize(span.size());
      Gather(span, 0, span.size(), servers_[i].parameters.data());
    }
  }

  void ExpectNothingOpen() {
    for (FakeServer& server : servers_) EXPECT_EQ(server.open, 0);
  }

  std::array<FakeServer, kServers> servers_;
  std::vector<std::string> addresses_;
  std::vector<std::string> dialed_;
  std::string unreachable_;
  Stripes stripes_{0, kServers};
  std::unique_ptr<ServerConnection> connection_;
  Values pulled_;
  bool wrote_ = false;
  Transfer transfer_;
};

// ---- One server ----

TEST_F(StripedConnectionTest, OneServerIsUsedAsItIs) {
  for (const size_t named : {0, 1}) {
    servers_[0].welcome.servers.resize(named);
    ASSERT_THAT(Join(1000), IsOk());
    EXPECT_THAT(Push(Counting(1000)), IsOk());
    EXPECT_EQ(servers_[0].received, Counting(1000));
    EXPECT_THAT(servers_[0].sends, ElementsAre(1000));
    servers_[0].parameters = Counting(1000);
    EXPECT_THAT(Pull(), IsOk());
    EXPECT_EQ(pulled_, Counting(1000));
  }
  EXPECT_THAT(servers_[0].attempts, Each(0));
  EXPECT_THAT(servers_[0].pulls, Each(0));
  EXPECT_THAT(dialed_, ElementsAre());
}

// ---- What is sent ----

TEST_F(StripedConnectionTest, EachServerGetsItsStripe) {
  for (const uint32_t size : {5u, 64u, 65u, 191u, 192u, 193u, 1000u, 70'001u, 500'000u}) {
    ASSERT_THAT(Join(size), IsOk());
    EXPECT_THAT(Push(Counting(size)), IsOk());
    for (uint32_t i = 0; i < kServers; ++i) {
      EXPECT_EQ(servers_[i].received.size(), stripes_.SizeOf(i));
    }
    EXPECT_TRUE(Joined() == Counting(size)) << size;
    OfferForPull(Counting(size));
    EXPECT_THAT(Pull(), IsOk());
    EXPECT_TRUE(pulled_ == Counting(size)) << size;
    EXPECT_TRUE(wrote_);
    Values offered = Counting(size);
    std::reverse(offered.begin(), offered.end());
    EXPECT_THAT(connection_->Initialize(SessionId(1), offered), IsOk());
    EXPECT_TRUE(Joined() == offered) << size;
  }
}

TEST_F(StripedConnectionTest, PartsOfAPushMayComeInAnyOrder) {
  ASSERT_THAT(Join(1000), IsOk());
  const auto push = connection_->StartPush(PushHeader(), 1000, BatchIs::kInSummary);
  const SharedFloats gradient = Share(Counting(1000));
  for (const auto& part : std::vector<std::pair<size_t, size_t>>{
           {900, 100}, {0, 1}, {1, 62}, {63, 2}, {65, 600}, {665, 0}, {665, 235}}) {
    EXPECT_TRUE(push->Send(part.first, gradient.Part(part.first, part.second)));
  }
  EXPECT_THAT(push->Finish({32, 0.5F, nullptr, nullptr, absl::nullopt}), IsOk());
  EXPECT_TRUE(Joined() == Counting(1000));
  for (const FakeServer& server : servers_) {
    EXPECT_EQ(server.summary.samples, 32u);
    EXPECT_THAT(server.batches, ElementsAre(BatchIs::kInSummary));
  }
}

TEST_F(StripedConnectionTest, SmallUnitsAreSentTogether) {
  const uint32_t size = kServers * 3 * kChunkElements;
  ASSERT_THAT(Join(size), IsOk());
  ASSERT_LT(stripes_.unit(), kChunkElements / 8);
  EXPECT_THAT(Push(Counting(size)), IsOk());
  EXPECT_THAT(servers_[1].sends, ElementsAre(kChunkElements, kChunkElements, kChunkElements));
}

TEST_F(StripedConnectionTest, LargeUnitsAreSentFromWhereTheyLie) {
  const uint32_t size = 1 << 24;
  ASSERT_THAT(Join(size), IsOk());
  ASSERT_EQ(stripes_.unit(), 1 << 15);
  const SharedFloats gradient = Share(Values(size));
  const auto push = StartPush();
  EXPECT_TRUE(push->Send(0, gradient));
  EXPECT_THAT(servers_[1].sends, AllOf(SizeIs(171), Each(1 << 15)));
  EXPECT_EQ(servers_[1].last_sent, gradient.values.data() + size - (1 << 15));
}

TEST_F(StripedConnectionTest, NumbersRiseWithinASession) {
  ASSERT_THAT(Join(100), IsOk());
  EXPECT_THAT(connection_->Initialize(SessionId(1), Counting(100)), IsOk());
  EXPECT_THAT(Push(Counting(100)), IsOk());
  EXPECT_THAT(Push(Counting(100)), IsOk());
  OfferForPull(Counting(100));
  EXPECT_THAT(Pull(), IsOk());
  EXPECT_THAT(Pull(), IsOk());
  ASSERT_THAT(JoinAgain(), IsOk());
  EXPECT_THAT(Push(Counting(100)), IsOk());
  EXPECT_THAT(Pull(), IsOk());
  for (const FakeServer& server : servers_) {
    EXPECT_THAT(server.attempts, ElementsAre(1, 2, 3, 1));
    EXPECT_THAT(server.pulls, ElementsAre(1, 2, 1));
  }
  EXPECT_THAT(dialed_, ElementsAre("host:1", "host:2"));
  EXPECT_EQ(servers_[1].joins, 0);
}

TEST_F(StripedConnectionTest, TheOtherServersLearnTheSessionAndHowMuchTheyHold) {
  servers_[0].welcome.session = SessionId(5);
  ASSERT_THAT(Join(1000), IsOk());
  EXPECT_EQ(servers_[0].session, SessionId());  // it has made it
  for (uint32_t i = 1; i < kServers; ++i) {
    EXPECT_EQ(servers_[i].session, SessionId(5));
    EXPECT_EQ(servers_[i].elements, stripes_.SizeOf(i));
  }
}

TEST_F(StripedConnectionTest, EveryServerLearnsTheEncodingOfPulls) {
  Encoding encoding;
  encoding.transform = ValueTransform::kFloat16;
  ASSERT_THAT(Join(100), IsOk());
  connection_->UsePullEncoding(encoding);
  for (const FakeServer& server : servers_)
    EXPECT_EQ(server.encoding.transform, encoding.transform);
}

TEST_F(StripedConnectionTest, ATransferIsThatOfAllServersAtOnce) {
  ASSERT_THAT(Join(1000), IsOk());
  const auto push = StartPush();
  push->Send(0, Share(Counting(1000)));
  EXPECT_THAT(push->Finish({}), IsOk());
  EXPECT_EQ(push->transfer().bytes, 4000u);
  EXPECT_EQ(push->transfer().time, absl::Seconds(4 * stripes_.SizeOf(0)));
  OfferForPull(Counting(1000));
  EXPECT_THAT(Pull(), IsOk());
  EXPECT_EQ(transfer_.bytes, 4000u);
  EXPECT_EQ(transfer_.time, absl::Seconds(4 * stripes_.SizeOf(0)));
}

TEST_F(StripedConnectionTest, EachStripeMayBeSentForItself) {
  ASSERT_THAT(Join(100), IsOk());
  const auto push = StartPush();
  EXPECT_TRUE(push->SendEach([&](uint32_t stripe, OutgoingPush& to) {
    return to.Send(0, Share(Values(stripes_.SizeOf(stripe), static_cast<float>(stripe))));
  }));
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    EXPECT_EQ(servers_[i].received, Values(stripes_.SizeOf(i), static_cast<float>(i)));
  }
}

TEST_F(StripedConnectionTest, AStripeWhosePushHasEndedIsSentNoMore) {
  ASSERT_THAT(Join(100), IsOk());
  const auto push = StartPush();
  std::atomic<int> calls{0};
  const auto send = [&](uint32_t stripe, OutgoingPush&) {
    ++calls;
    return stripe != 1;
  };
  EXPECT_TRUE(push->SendEach(send));
  EXPECT_TRUE(push->SendEach(send));
  EXPECT_EQ(calls, 5);
}

TEST_F(StripedConnectionTest, AnEncodedChunkBelongsToOneStripe) {
  ASSERT_THAT(Join(100), IsOk());
  const auto push = StartPush();
  EXPECT_FALSE(push->Send(EncodedChunk()));
  EXPECT_THAT(push->Finish({}),
              HasCode(absl::StatusCode::kInternal, HasSubstr("send it by SendEach()")));
}

// ---- Connections ----

TEST_F(StripedConnectionTest, NamesTheServerThatCannotBeReached) {
  unreachable_ = "host:2";
  EXPECT_THAT(Join(100), HasCode(kUnavailable, "server 2 of 3 at host:2: nobody listens"));
  unreachable_.clear();
  EXPECT_THAT(JoinAgain(), IsOk());
  EXPECT_THAT(dialed_, ElementsAre("host:1", "host:2", "host:2"));
  servers_[0].reconnect = absl::UnavailableError("it is gone");
  EXPECT_THAT(connection_->Reconnect(), HasCode(kUnavailable, "it is gone"));
}

TEST_F(StripedConnectionTest, AfterALossTheOtherServersAreDialedWhereTheyAreThen) {
  ASSERT_THAT(Join(100), IsOk());
  ASSERT_THAT(connection_->Reconnect(), IsOk());
  servers_[0].welcome.servers[1] = "other:1";
  ASSERT_THAT(JoinAgain(), IsOk());
  EXPECT_THAT(dialed_, ElementsAre("host:1", "host:2", "other:1", "host:2"));
}

TEST_F(StripedConnectionTest, AServerThatHasMovedIsDialedAgain) {
  ASSERT_THAT(Join(100), IsOk());
  servers_[0].welcome.servers[1] = "other:1";
  ASSERT_THAT(JoinAgain(), IsOk());
  EXPECT_THAT(dialed_, ElementsAre("host:1", "host:2", "other:1"));
}

// A worker that could not join again may still be used, and then tries once more.
TEST_F(StripedConnectionTest, CallsFailWhileAServerIsMissing) {
  ASSERT_THAT(Join(100), IsOk());
  ASSERT_THAT(connection_->Reconnect(), IsOk());
  unreachable_ = "host:2";
  ASSERT_THAT(JoinAgain(), HasCode(kUnavailable, _));
  const auto missing = HasCode(kUnavailable, "server 2 of 3 at host:2: it is not connected");
  for (const CallPhase phase : {CallPhase::kSend, CallPhase::kRead, CallPhase::kOffer}) {
    EXPECT_THAT(Meet(phase), missing);
  }
  Values row(1);
  EXPECT_THAT(connection_->StartRowPull(PullRequest(), {{0, {1}}})->Read(absl::MakeSpan(row)),
              missing);
  unreachable_.clear();
  ASSERT_THAT(JoinAgain(), IsOk());
  EXPECT_THAT(Meet(CallPhase::kSend), IsOk());
}

// ---- Failures ----

struct Place {
  CallPhase phase;
  uint32_t server;
};

std::string PlaceName(const ::testing::TestParamInfo<Place>& info) {
  static constexpr const char* kNames[] = {"Sending", "AwaitingTheAnswer", "Pulling", "Offering"};
  return absl::StrCat(kNames[static_cast<int>(info.param.phase)], "Server", info.param.server);
}

// Where a failure ends the call to all servers.
std::vector<Place> AllPlaces() {
  std::vector<Place> places = {{CallPhase::kSend, 0}};
  for (const CallPhase phase : {CallPhase::kFinish, CallPhase::kRead, CallPhase::kOffer}) {
    for (uint32_t server = 0; server < kServers; ++server) places.push_back({phase, server});
  }
  return places;
}

class StripedFailureTest : public StripedConnectionTest,
                           public ::testing::WithParamInterface<Place> {
 protected:
  // All servers wait in that phase, except the one that fails there.
  void Arrange(const absl::Status& fault) {
    for (uint32_t i = 0; i < kServers; ++i) {
      if (i == GetParam().server) {
        servers_[i].fails = {GetParam().phase};
        servers_[i].fault = fault;
      } else {
        servers_[i].blocks = {GetParam().phase};
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, StripedFailureTest, ::testing::ValuesIn(AllPlaces()), PlaceName);

TEST_P(StripedFailureTest, EndsTheOtherCalls) {
  ASSERT_THAT(Join(1000, absl::ZeroDuration()), IsOk());
  Arrange(MakeError(Reason::kCorruptChunk, "a bit fell over"));
  const absl::Status end = Meet(GetParam().phase);
  const uint32_t failed = GetParam().server;
  EXPECT_THAT(end, IsError(Reason::kCorruptChunk, HasSubstr("a bit fell over")));
  EXPECT_EQ(end.message() == "a bit fell over", failed == 0) << end;
  for (uint32_t i = 0; i < kServers; ++i) EXPECT_EQ(servers_[i].cancelled, i == failed ? 0 : 1);
  ExpectNothingOpen();
}

TEST_P(StripedFailureTest, KeepsTheCodeOfAnErrorWithoutReason) {
  ASSERT_THAT(Join(1000, absl::ZeroDuration()), IsOk());
  Arrange(absl::DeadlineExceededError("Deadline Exceeded"));
  EXPECT_THAT(Meet(GetParam().phase), HasCode(kDeadlineExceeded, _));
  ExpectNothingOpen();
}

// Two calls wait without end; only a cancelled call returns.
TEST_P(StripedFailureTest, CancelEndsEveryCall) {
  ASSERT_THAT(Join(1000), IsOk());
  for (FakeServer& server : servers_) server.blocks = {GetParam().phase};
  Values vector = Counting(1000);
  std::unique_ptr<OutgoingPush> push;
  std::unique_ptr<PendingPull> pull;
  std::unique_ptr<PendingOffer> offer;
  std::thread caller;
  if (GetParam().phase == CallPhase::kRead) {
    pull = connection_->StartPull(PullRequest());
    caller = std::thread([&] { EXPECT_FALSE(pull->Read(absl::MakeSpan(vector)).ok()); });
    pull->Cancel();
  } else if (GetParam().phase == CallPhase::kOffer) {
    offer = connection_->StartOffer(SessionId(1), 0, 1000);
    caller = std::thread([&] { EXPECT_FALSE(offer->Send(absl::MakeConstSpan(vector)).ok()); });
    offer->Cancel();
  } else {
    push = StartPush();
    caller = std::thread([&] {
      push->Send(0, Share(vector));
      EXPECT_FALSE(push->Finish({}).ok());
    });
    push->Cancel();
  }
  caller.join();
}

TEST_F(StripedConnectionTest, APushThatTheLeaderHasEndedIsSentNoMore) {
  const uint32_t size = kServers * 3 * kChunkElements;
  ASSERT_THAT(Join(size, absl::ZeroDuration()), IsOk());
  servers_[0].fails = {CallPhase::kSend};
  servers_[0].fault = absl::UnavailableError("it broke");
  const auto push = StartPush();
  const SharedFloats gradient = Share(Values(size));
  EXPECT_FALSE(push->Send(0, gradient));
  EXPECT_FALSE(push->Send(0, gradient));
  EXPECT_EQ(servers_[0].calls_of_send, 1);
  EXPECT_THAT(push->Finish({}), HasCode(kUnavailable, "it broke"));
}

TEST_F(StripedConnectionTest, AnErrorThatAnotherServerFindsEarlyIsJudgedByTheLeader) {
  const uint32_t size = kServers * 3 * kChunkElements;
  ASSERT_THAT(Join(size), IsOk());
  servers_[1].fails = {CallPhase::kSend};
  servers_[1].fault = MakeError(Reason::kNotFinite, "element 7 is NaN");
  servers_[0].outcome.disposition = Disposition::kSkipped;
  const auto push = StartPush();
  const SharedFloats gradient = Share(Values(size));
  const uint64_t half = size / 2;
  EXPECT_TRUE(push->Send(0, gradient.Part(0, half)));
  EXPECT_TRUE(push->Send(half, gradient.Part(half, size - half)));
  EXPECT_EQ(servers_[1].calls_of_send, 1);  // it is sent no more
  EXPECT_EQ(servers_[0].received.size(), size / kServers);
  const auto outcome = push->Finish({});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->disposition, Disposition::kSkipped);
}

// ---- Rows ----

TEST_F(StripedConnectionTest, PushesAndPullsOfRowsStartOnAllServersAtOnce) {
  ASSERT_THAT(Join(100), IsOk());
  const std::vector<RowId> ids = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const bool push : {true, false}) {
    std::atomic<uint32_t> started{0};
    absl::Notification all;
    for (FakeServer& server : servers_) {
      server.on_start = [&] {
        if (++started == kServers) all.Notify();
        EXPECT_TRUE(all.WaitForNotificationWithTimeout(absl::Seconds(10)));
      };
    }
    if (push) {
      const RowGradients rows = {{{0, ids}, Share(Values(8))}};
      connection_->StartPush(PushHeader(), 100, BatchIs::kInHeader, rows);
    } else {
      connection_->StartRowPull(PullRequest(), {{0, ids}});
    }
    EXPECT_EQ(started, kServers);
  }
}

TEST_F(StripedConnectionTest, RowsThatWereAskedForMayBeReadWhenTheConnectionIsGone) {
  ASSERT_THAT(Join(100), IsOk());
  const auto pull = connection_->StartRowPull(PullRequest(), {{0, {}}});
  connection_ = nullptr;
  EXPECT_THAT(pull->Read(absl::Span<float>()), IsOk());
}

// ---- The leader's answer ----

TEST_F(StripedConnectionTest, TheLeadersAnswerEndsAPush) {
  ASSERT_THAT(Join(1000), IsOk());
  servers_[1].blocks = {CallPhase::kFinish};
  servers_[2].blocks = {CallPhase::kFinish};
  EXPECT_THAT(Push(Counting(1000)), IsOk());
  EXPECT_EQ(servers_[1].cancelled, 1);
  EXPECT_EQ(servers_[2].cancelled, 1);
}

TEST_F(StripedConnectionTest, TheLeadersAnswerEndsAnOffer) {
  ASSERT_THAT(Join(1000), IsOk());
  servers_[0].initialized = {false, Step(5)};
  servers_[1].blocks = {CallPhase::kOffer};
  const auto outcome = connection_->Initialize(SessionId(1), Counting(1000));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_FALSE(outcome->accepted);
  EXPECT_EQ(outcome->step, Step(5));
  EXPECT_EQ(servers_[1].cancelled, 1);
}

// A replica drops what the leader has answered, and may be heard first.
TEST_F(StripedConnectionTest, TheLeadersAnswerCountsAlsoIfAnotherServerIsFaster) {
  ASSERT_THAT(Join(1000), IsOk());
  absl::Notification dropped;
  servers_[0].outcome.disposition = Disposition::kStaleDropped;
  servers_[0].blocks = {CallPhase::kFinish};
  servers_[0].go = &dropped;
  for (const CallPhase phase : {CallPhase::kSend, CallPhase::kFinish}) {
    servers_[2].fails = {phase};
    servers_[2].fault = absl::CancelledError("the push was answered by the leader");
    servers_[2].on_fault = [&] {
      if (!dropped.HasBeenNotified()) dropped.Notify();
    };
    const auto outcome = Push(Counting(1000));
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->disposition, Disposition::kStaleDropped);
    EXPECT_EQ(servers_[0].cancelled, 0);
  }
}

TEST_F(StripedConnectionTest, TheLeadersErrorSaysMore) {
  ASSERT_THAT(Join(1000), IsOk());
  absl::Notification dropped;
  servers_[0].fails = {CallPhase::kRead};
  servers_[0].fault = MakeError(Reason::kDraining, "the server is going down");
  servers_[0].on_fault = [&] { dropped.WaitForNotification(); };
  servers_[1].fails = {CallPhase::kRead};
  servers_[1].fault = absl::CancelledError("the pull was dropped");
  servers_[1].on_fault = [&] { dropped.Notify(); };
  EXPECT_THAT(Pull(), IsError(Reason::kDraining, HasSubstr("going down")));
}

// The leader tells what another server misses, and may have no lanes itself.
TEST_F(StripedConnectionTest, APushOfWhichALaneMayHaveLostAPartMayBeRepeated) {
  ASSERT_THAT(Join(1000), IsOk());
  servers_[0].fails = {CallPhase::kFinish};
  servers_[0].fault = MakeError(Reason::kBadChunk, "elements are missing");
  EXPECT_THAT(Push(Counting(1000)).status(), IsError(Reason::kBadChunk, _));
  servers_[1].has_lanes = true;
  EXPECT_THAT(Push(Counting(1000)).status(),
              HasCode(kUnavailable, "a part of the push was lost: elements are missing"));
  servers_[0].fault = MakeError(Reason::kNotFinite, "w[3] is nan");
  EXPECT_THAT(Push(Counting(1000)).status(), IsError(Reason::kNotFinite, _));
}

TEST_F(StripedConnectionTest, OnlyTheLeaderAnswersAPush) {
  ASSERT_THAT(Join(1000), IsOk());
  servers_[0].outcome.disposition = Disposition::kPartTaken;
  EXPECT_THAT(Push(Counting(1000)), HasCode(kInternal, _));
  servers_[0].outcome.disposition = Disposition::kAccepted;
  servers_[0].blocks = {CallPhase::kFinish};
  servers_[1].outcome.disposition = Disposition::kAccepted;
  ASSERT_THAT(Join(1000, absl::ZeroDuration()), IsOk());
  EXPECT_THAT(Push(Counting(1000)), HasCode(kInternal, HasSubstr("server 1 of 3")));
}

// ---- Pulls ----

TEST_F(StripedConnectionTest, APullThatFailsHalfwayHasWritten) {
  ASSERT_THAT(Join(1000, absl::ZeroDuration()), IsOk());
  OfferForPull(Counting(1000));
  servers_[1].fails = {CallPhase::kRead};
  servers_[1].fault = absl::UnavailableError("it broke");
  EXPECT_THAT(Pull(), HasCode(kUnavailable, _));
  EXPECT_TRUE(wrote_);
  servers_[0].blocks = {CallPhase::kRead};
  servers_[2].blocks = {CallPhase::kRead};
  EXPECT_THAT(Pull(), HasCode(kUnavailable, _));
  EXPECT_FALSE(wrote_);
}

TEST_F(StripedConnectionTest, AllServersSendOneStep) {
  ASSERT_THAT(Join(1000), IsOk());
  OfferForPull(Counting(1000));
  servers_[2].header.step = Step(8);
  EXPECT_THAT(Pull(), HasCode(kInternal,
                              "server 2 of 3 at host:2: it sent step 8 of incarnation 1, and the "
                              "first server step 7 of incarnation 1"));
  EXPECT_TRUE(wrote_);
  servers_[2].header.step = Step(7);
  servers_[2].header.incarnation = Incarnation(2);
  EXPECT_THAT(Pull(), HasCode(kUnavailable, _));
  servers_[2].header.incarnation = Incarnation(1);
  servers_[2].header.not_modified = true;
  EXPECT_THAT(Pull(), HasCode(kInternal, _));
}

TEST_F(StripedConnectionTest, TheHeaderIsTheLeaders) {
  ASSERT_THAT(Join(1000), IsOk());
  for (FakeServer& server : servers_) server.header.not_modified = true;
  servers_[0].header.last = true;
  servers_[0].header.learning_rate = 0.25;
  const auto header = Pull();
  ASSERT_THAT(header, IsOk());
  EXPECT_TRUE(header->not_modified);
  EXPECT_TRUE(header->last);
  EXPECT_EQ(header->learning_rate, 0.25);
  EXPECT_FALSE(wrote_);
}

// Otherwise fast steps could overwrite the parameters of one server or another in each pull.
TEST_F(StripedConnectionTest, AfterAPullThatWasOverwrittenTheNextOneSharesNoMemoryWithAnyServer) {
  ASSERT_THAT(Join(100), IsOk());
  OfferForPull(Counting(100));
  servers_[1].overwritten = true;
  EXPECT_THAT(Pull(), HasCode(absl::StatusCode::kDeadlineExceeded, _));
  EXPECT_TRUE(wrote_);
  servers_[1].overwritten = false;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Pull(), IsOk());
    EXPECT_EQ(pulled_, Counting(100));
  }
  for (const FakeServer& server : servers_) {
    EXPECT_THAT(server.may_lie, ElementsAre(true, false, true));
  }
}

// ---- Slots ----

PulledSlots SlotsOf(Step step, const Values& values) {
  PulledSlots slots = {step, step.value(), {"exp_avg"}};
  slots.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return slots;
}

// A server that is pulled first may not have made a step that the others have.
TEST_F(StripedConnectionTest, PullsSlotsAgainUntilAllAreOfOneStep) {
  ASSERT_THAT(Join(100), IsOk());
  std::array<int, kServers> pulls = {};
  for (uint32_t i = 0; i < kServers; ++i) {
    Values values(stripes_.SizeOf(i));
    for (uint64_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(stripes_.InVector(i, k));
    }
    servers_[i].slots = [&pulls, i, values] {
      return SlotsOf(Step(i == 1 && ++pulls[i] < 3 ? 6 : 7), values);
    };
  }
  const auto slots = connection_->PullSlots(SessionId(1), 100);
  ASSERT_THAT(slots, IsOk());
  EXPECT_EQ(pulls[1], 3);
  EXPECT_EQ(slots->step, Step(7));
  EXPECT_EQ(slots->bytes, SlotsOf(Step(7), Counting(100)).bytes);
}

TEST_F(StripedConnectionTest, AStripeWithoutElementsMayHaveNoSlots) {
  ASSERT_THAT(Join(10), IsOk());
  for (FakeServer& server : servers_) server.slots = [] { return PulledSlots{Step(7)}; };
  servers_[0].slots = [] { return SlotsOf(Step(7), Counting(10)); };
  const auto slots = connection_->PullSlots(SessionId(1), 10);
  ASSERT_THAT(slots, IsOk());
  EXPECT_EQ(slots->bytes, SlotsOf(Step(7), Counting(10)).bytes);
}

TEST_F(StripedConnectionTest, GivesUpOnSlotsThatAreNeverOfOneStep) {
  ASSERT_THAT(Join(100), IsOk());
  for (uint32_t i = 0; i < kServers; ++i) {
    servers_[i].slots = [i] { return SlotsOf(Step(i), {}); };
  }
  EXPECT_THAT(connection_->PullSlots(SessionId(1), 100),
              HasCode(kDeadlineExceeded, HasSubstr("make steps so fast")));
}

TEST_F(StripedConnectionTest, NamesTheServerThatGivesNoSlots) {
  ASSERT_THAT(Join(100), IsOk());
  for (FakeServer& server : servers_) server.slots = [] { return SlotsOf(Step(7), {}); };
  servers_[2].slots = [] { return absl::UnavailableError("it ends"); };
  EXPECT_THAT(connection_->PullSlots(SessionId(1), 100),
              HasCode(kUnavailable, HasSubstr("server 2 of 3 at host:2: it ends")));
}

}  // namespace
}  // namespace sluice

// A replica keeps calls until the leader's log tells of their session, except those of sessions
// that an earlier incarnation of the leader opened.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replica/replica.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRounds = 500;      // of two threads
constexpr uint64_t kBase = 1000;  // the leader's sessions have the numbers from 1001 on

class ReplicaCallsTest : public ::testing::Test {
 protected:
  static PullRequest PullOf(uint64_t session) {
    PullRequest request;
    request.session = SessionId(session);
    request.number = 1;
    return request;
  }
  static PushHeader HeaderOf(uint64_t session) {
    PushHeader header;
    header.session = SessionId(session);
    header.sequence = Sequence(1);
    header.attempt = 1;
    return header;
  }
  static Replica MakeReplica() {
    return {{1, 2},
            SnapshotMemory::kPrivate,
            std::make_unique<Serial>(),
            Executors::Inline(),
            [](const ReplicaReport&) {}};
  }

  // Each begins a call of the session, whose end goes to `ends_`.
  void Pull(uint64_t session) {
    replica_.Pull(PullOf(session),
                  [this](const auto& result) { ends_.push_back(result.status()); });
  }
  void Push(uint64_t session) {
    const auto start = [this](const absl::StatusOr<PushStart>& push) {
      ends_.push_back(push.status());
    };
    replica_.BeginPush(HeaderOf(session), start, [] {});
  }
  void Offer(uint64_t session) {
    const auto start = [this](const absl::StatusOr<InitializeStart>& offer) {
      ends_.push_back(offer.status());
    };
    replica_.BeginInitialize(SessionId(session), 1, start, [] {});
  }
  void BeginAll(uint64_t session) {
    Pull(session);
    Push(session);
    Offer(session);
  }

  static ::testing::Matcher<absl::Status> Unknown(const std::string& session) {
    return IsError(Reason::kUnknownSession, HasSubstr("session " + session + "; join again"));
  }

  std::vector<absl::Status> ends_;
  Replica replica_ = MakeReplica();
};

TEST_F(ReplicaCallsTest, EndsTheCallsOfAnEarlierIncarnationWhenTheLeaderHasTakenIt) {
  BeginAll(kBase);
  BeginAll(kBase + (uint64_t{1} << 32) + 1);
  EXPECT_THAT(ends_, IsEmpty());
  replica_.calls().EndEarlier(SessionId(kBase));
  const auto low = Unknown("1000");
  const auto high = Unknown("4294968297");
  EXPECT_THAT(ends_, ::testing::UnorderedElementsAre(low, low, low, high, high, high));
}

TEST_F(ReplicaCallsTest, EndsSuchCallsAtOnceFromThenOn) {
  replica_.calls().EndEarlier(SessionId(kBase));
  BeginAll(7);
  EXPECT_THAT(ends_, ElementsAre(Unknown("7"), Unknown("7"), Unknown("7")));
}

TEST_F(ReplicaCallsTest, KeepsCallsThatOvertakeTheLog) {
  BeginAll(kBase + 1);
  replica_.calls().EndEarlier(SessionId(kBase));
  BeginAll(kBase + (uint64_t{1} << 32));
  EXPECT_THAT(ends_, IsEmpty());
}

TEST_F(ReplicaCallsTest, EndsACallAtTheSecondTickIfTheLogDoesNotTellOfItsSession) {
  replica_.calls().EndEarlier(SessionId(kBase));
  Pull(kBase + 1);
  replica_.calls().EndUnknown();
  EXPECT_THAT(ends_, IsEmpty());
  replica_.calls().EndUnknown();
  EXPECT_THAT(ends_, ElementsAre(Unknown("1001")));
}

TEST_F(ReplicaCallsTest, LimitsTheCallsOfASessionOfEachKind) {
  replica_.Execute(OpenSession{SessionId(kBase + 1)});
  const auto pull = [&](uint64_t number) {
    PullRequest request = PullOf(kBase + 1);
    request.number = number;
    return replica_.Pull(request, [this](const auto& result) { ends_.push_back(result.status()); });
  };
  const PullId first = pull(1);
  for (uint64_t i = 2; i <= WorkerCalls::kMostOfSession; ++i) pull(i);
  EXPECT_THAT(ends_, IsEmpty());
  pull(1000);
  EXPECT_THAT(ends_, ElementsAre(IsError(Reason::kBadArgument, HasSubstr("is one too many"))));
  EXPECT_TRUE(replica_.CancelPull(first));
  pull(1001);
  Push(kBase + 1);
  EXPECT_EQ(ends_.size(), 1u);
}

// Each way in which a call ends gives its place to another.
TEST_F(ReplicaCallsTest, LimitsTheCallsOfSessionsThatTheLogHasNotOpened) {
  std::vector<PullId> ids;
  const auto fill = [&] {
    ends_.clear();
    for (uint64_t i = 0; i < WorkerCalls::kMostUnknown; ++i) {
      ids.push_back(replica_.Pull(
          PullOf(kBase + 1 + i), [this](const auto& result) { ends_.push_back(result.status()); }));
    }
    EXPECT_THAT(ends_, IsEmpty());
    Push(kBase + 100000);
    EXPECT_THAT(ends_, ElementsAre(Unknown("101000")));
  };
  fill();
  for (const PullId id : ids) EXPECT_TRUE(replica_.CancelPull(id));
  fill();
  replica_.calls().EndUnknown();
  replica_.calls().EndUnknown();
  EXPECT_EQ(ends_.size(), WorkerCalls::kMostUnknown + 1);
  fill();
  for (uint64_t i = 0; i < WorkerCalls::kMostUnknown; ++i) {
    replica_.Execute(OpenSession{SessionId(kBase + 1 + i)});
    replica_.Execute(EndSession{SessionId(kBase + 1 + i)});
  }
  EXPECT_EQ(ends_.size(), WorkerCalls::kMostUnknown + 1);
  for (uint64_t i = 0; i < WorkerCalls::kMostUnknown; ++i) Push(kBase + 50000 + i);
  EXPECT_EQ(ends_.size(), WorkerCalls::kMostUnknown + 1);
  Push(kBase + 100000);
  EXPECT_EQ(ends_.size(), WorkerCalls::kMostUnknown + 2);
}

// Calls come on one thread while another ends those of earlier incarnations. Whichever is first,
// each call ends once.
TEST_F(ReplicaCallsTest, EndsEachEarlierCallOnceWheneverTheLeaderIsTaken) {
  constexpr uint64_t kCalls = 100;
  for (int round = 0; round < kRounds; ++round) {
    Replica replica = MakeReplica();
    std::atomic<uint64_t> begun{0};
    std::atomic<uint64_t> ends{0};
    const auto ended = [&](const auto& result) {
      EXPECT_EQ(ReasonOf(result.status()), Reason::kUnknownSession);
      ++ends;
    };
    std::thread caller([&] {
      for (uint64_t session = 1; session <= kCalls; ++session) {
        begun = session;
        replica.BeginPush(HeaderOf(session), ended, nullptr);
        replica.Pull(PullOf(session), ended);
      }
    });
    while (begun < kCalls / 2) {
    }
    replica.calls().EndEarlier(SessionId(kBase));
    caller.join();
    ASSERT_EQ(ends, 2 * kCalls) << "in round " << round;
  }
}

// A call is cancelled on one thread while another brings one of the same name.
TEST_F(ReplicaCallsTest, KeepsACallThatTakesTheNameOfOneThatIsCancelled) {
  for (int round = 0; round < kRounds; ++round) {
    Replica replica = MakeReplica();
    std::atomic<int> first_ends{0};
    std::atomic<int> ends{0};
    const PushId push = replica.BeginPush(
        HeaderOf(1001), [&](const auto&) { ++first_ends; }, nullptr);
    const PullId pull = replica.Pull(PullOf(1001), [&](const auto&) { ++first_ends; });
    std::thread caller([&] {
      EXPECT_TRUE(replica.CancelPush(push));
      EXPECT_TRUE(replica.CancelPull(pull));
    });
    PushId next_push;
    PullId next_pull;
    int refused = 0;
    const auto ended = [&](const auto& result) {
      if (ReasonOf(result.status()) == Reason::kBadArgument) ++refused;
      ++ends;
    };
    while (next_push == PushId()) next_push = replica.BeginPush(HeaderOf(1001), ended, nullptr);
    while (next_pull == PullId()) next_pull = replica.Pull(PullOf(1001), ended);
    caller.join();
    EXPECT_EQ(ends, refused);
    replica.calls().EndEarlier(SessionId(5000));
    ASSERT_EQ(ends, refused + 2) << "in round " << round;
    ASSERT_EQ(first_ends, 0);
  }
}

}  // namespace
}  // namespace sluice

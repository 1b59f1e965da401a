// A holder keeps calls until the sequencer's log tells of their session, except those of sessions
// that an earlier incarnation of the sequencer opened.

#include "server/shard/held_stripe.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRounds = 500;      // of two threads
constexpr uint64_t kBase = 1000;  // the sequencer's sessions have the numbers from 1001 on

class HeldStripeTest : public ::testing::Test {
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
  static HeldStripe MakeStripe() {
    return {{1, 2},
            SnapshotMemory::kPrivate,
            std::make_unique<Serial>(),
            Executors::Inline(),
            [](const HolderReport&) {}};
  }

  // Each begins a call of the session, whose end goes to `ends_`.
  void Pull(uint64_t session) {
    stripe_.Pull(PullOf(session), [this](const auto& result) { ends_.push_back(result.status()); });
  }
  void Push(uint64_t session) {
    const auto start = [this](const absl::StatusOr<PushStart>& push) {
      ends_.push_back(push.status());
    };
    stripe_.BeginPush(HeaderOf(session), start, [] {});
  }
  void Offer(uint64_t session) {
    const auto start = [this](const absl::StatusOr<InitializeStart>& offer) {
      ends_.push_back(offer.status());
    };
    stripe_.BeginInitialize(SessionId(session), 1, start, [] {});
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
  HeldStripe stripe_ = MakeStripe();
};

TEST_F(HeldStripeTest, EndsTheCallsOfAnEarlierIncarnationWhenTheSequencerHasTakenIt) {
  BeginAll(kBase);
  BeginAll(kBase + (uint64_t{1} << 32) + 1);
  EXPECT_THAT(ends_, IsEmpty());
  stripe_.EndEarlier(SessionId(kBase));
  const auto low = Unknown("1000");
  const auto high = Unknown("4294968297");
  EXPECT_THAT(ends_, ::testing::UnorderedElementsAre(low, low, low, high, high, high));
}

TEST_F(HeldStripeTest, EndsSuchCallsAtOnceFromThenOn) {
  stripe_.EndEarlier(SessionId(kBase));
  BeginAll(7);
  EXPECT_THAT(ends_, ElementsAre(Unknown("7"), Unknown("7"), Unknown("7")));
}

TEST_F(HeldStripeTest, KeepsCallsThatOvertakeTheLog) {
  BeginAll(kBase + 1);
  stripe_.EndEarlier(SessionId(kBase));
  BeginAll(kBase + (uint64_t{1} << 32));
  EXPECT_THAT(ends_, IsEmpty());
}

TEST_F(HeldStripeTest, EndsACallAtTheSecondTickIfTheLogDoesNotTellOfItsSession) {
  stripe_.EndEarlier(SessionId(kBase));
  Pull(kBase + 1);
  stripe_.EndUnknown();
  EXPECT_THAT(ends_, IsEmpty());
  stripe_.EndUnknown();
  EXPECT_THAT(ends_, ElementsAre(Unknown("1001")));
}

// Calls come on one thread while another ends those of earlier incarnations. Whichever is first,
// each call ends once.
TEST_F(HeldStripeTest, EndsEachEarlierCallOnceWheneverTheSequencerIsTaken) {
  constexpr uint64_t kCalls = 100;
  for (int round = 0; round < kRounds; ++round) {
    HeldStripe stripe = MakeStripe();
    std::atomic<uint64_t> begun{0};
    std::atomic<uint64_t> ends{0};
    const auto ended = [&](const auto& result) {
      EXPECT_EQ(ReasonOf(result.status()), Reason::kUnknownSession);
      ++ends;
    };
    std::thread caller([&] {
      for (uint64_t session = 1; session <= kCalls; ++session) {
        begun = session;
        stripe.BeginPush(HeaderOf(session), ended, nullptr);
        stripe.Pull(PullOf(session), ended);
      }
    });
    while (begun < kCalls / 2) {
    }
    stripe.EndEarlier(SessionId(kBase));
    caller.join();
    ASSERT_EQ(ends, 2 * kCalls) << "in round " << round;
  }
}

// A call is cancelled on one thread while another brings one of the same name.
TEST_F(HeldStripeTest, KeepsACallThatTakesTheNameOfOneThatIsCancelled) {
  for (int round = 0; round < kRounds; ++round) {
    HeldStripe stripe = MakeStripe();
    std::atomic<int> first_ends{0};
    std::atomic<int> ends{0};
    const PushId push = stripe.BeginPush(
        HeaderOf(1001), [&](const auto&) { ++first_ends; }, nullptr);
    const PullId pull = stripe.Pull(PullOf(1001), [&](const auto&) { ++first_ends; });
    std::thread caller([&] {
      EXPECT_TRUE(stripe.CancelPush(push));
      EXPECT_TRUE(stripe.CancelPull(pull));
    });
    PushId next_push;
    PullId next_pull;
    int refused = 0;
    const auto ended = [&](const auto& result) {
      if (ReasonOf(result.status()) == Reason::kBadArgument) ++refused;
      ++ends;
    };
    while (next_push == PushId()) next_push = stripe.BeginPush(HeaderOf(1001), ended, nullptr);
    while (next_pull == PullId()) next_pull = stripe.Pull(PullOf(1001), ended);
    caller.join();
    EXPECT_EQ(ends, refused);
    stripe.EndEarlier(SessionId(5000));
    ASSERT_EQ(ends, refused + 2) << "in round " << round;
    ASSERT_EQ(first_ends, 0);
  }
}

}  // namespace
}  // namespace sluice

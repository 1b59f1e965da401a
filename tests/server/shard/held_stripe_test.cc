// A holder keeps calls until the sequencer's log tells of their session, except those of sessions
// that an earlier incarnation of the sequencer opened.

#include "server/shard/held_stripe.h"

#include <memory>
#include <string>
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

constexpr uint64_t kBase = 1000;  // the sequencer's sessions have the numbers from 1001 on

class HeldStripeTest : public ::testing::Test {
 protected:
  // Each begins a call of the session, whose end goes to `ends_`.
  void Pull(uint64_t session) {
    PullRequest request;
    request.session = SessionId(session);
    request.number = 1;
    stripe_.Pull(request, [this](const auto& result) { ends_.push_back(result.status()); });
  }
  void Push(uint64_t session) {
    PushHeader header;
    header.session = SessionId(session);
    header.sequence = Sequence(1);
    header.attempt = 1;
    const auto start = [this](const absl::StatusOr<PushStart>& push) {
      ends_.push_back(push.status());
    };
    stripe_.BeginPush(header, start, [] {});
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
  HeldStripe stripe_{{1, 2},
                     SnapshotMemory::kPrivate,
                     std::make_unique<Serial>(),
                     Executors::Inline(),
                     [](const HolderReport&) {}};
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

}  // namespace
}  // namespace sluice

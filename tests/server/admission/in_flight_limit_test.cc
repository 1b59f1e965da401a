#include "server/admission/in_flight_limit.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::optional<Rank> kNobody;

Rank Of(uint32_t index) { return {index, "w"}; }

// Each session has its number as its rank.
class InFlightLimitTest : public ::testing::Test {
 protected:
  void Wait(InFlightLimit& limit, uint64_t session) {
    Arriving push;
    push.id = last_id_ = last_id_.Next();
    push.header.session = SessionId(session);
    push.rank = Of(session);
    push.cancel = [this, session] { cancelled_.push_back(session); };
    limit.Wait(std::move(push));
  }

  // Admits as many as possible. Returns their sessions in order.
  static std::vector<uint64_t> LetIn(InFlightLimit& limit,
                                     const absl::optional<Rank>& first_missing = kNobody,
                                     ReductionOrder order = ReductionOrder::kArrival) {
    std::vector<uint64_t> in;
    while (const absl::optional<Arriving> push = limit.LetIn(first_missing, order)) {
      in.push_back(push->header.session.value());
    }
    return in;
  }

  void CancelAllBut(InFlightLimit& limit, uint64_t alive) {
    Completions completions;
    limit.CancelEnded([alive](SessionId session) { return session == SessionId(alive); },
                      &completions);
    EXPECT_THAT(cancelled_, IsEmpty());  // only once the completions run
    completions.Run();
  }

  PushId last_id_;
  std::vector<uint64_t> cancelled_;
};

TEST_F(InFlightLimitTest, LetsPushesInInTheOrderTheyCame) {
  InFlightLimit limit(10);
  EXPECT_TRUE(limit.empty());
  for (const uint64_t session : {3, 1, 2}) Wait(limit, session);
  EXPECT_FALSE(limit.empty());
  EXPECT_THAT(LetIn(limit), ElementsAre(3, 1, 2));
  EXPECT_FALSE(limit.empty());
  for (const uint64_t session : {3, 1, 2}) limit.Release(SessionId(session));
  EXPECT_TRUE(limit.empty());
}

TEST_F(InFlightLimitTest, CountsWhatTheJournalHolds) {
  InFlightLimit limit(4);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(limit, session);
  limit.SetJournaled(2);
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  limit.Release(SessionId(1));
  limit.SetJournaled(9);
  EXPECT_THAT(LetIn(limit), IsEmpty());
  EXPECT_THAT(LetIn(limit, Of(3)), IsEmpty());
  limit.SetJournaled(3);
  EXPECT_THAT(LetIn(limit, Of(3)), ElementsAre(3));
  limit.SetJournaled(0);
  EXPECT_THAT(LetIn(limit), ElementsAre(2, 4));
}

TEST_F(InFlightLimitTest, KeepsTheOthersWaitingUntilSomeoneLeaves) {
  InFlightLimit limit(3);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 2));
  limit.Release(SessionId(2));
  EXPECT_THAT(LetIn(limit), ElementsAre(3));
  limit.Release(SessionId(1));
  limit.Release(SessionId(3));
  EXPECT_THAT(LetIn(limit), ElementsAre(4));
}

TEST_F(InFlightLimitTest, KeepsTheLastVectorForWhomTheStepWaitsFor) {
  InFlightLimit limit(2);
  for (const uint64_t session : {3, 2, 1}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(0)), ElementsAre(3));
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(1));
  EXPECT_THAT(LetIn(limit, Of(2)), IsEmpty());
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit, Of(2)), ElementsAre(2));
}

TEST_F(InFlightLimitTest, InRankOrderTheLowestWaitingRankEntersFirst) {
  InFlightLimit limit(4);
  for (const uint64_t session : {6, 3, 8, 2, 9}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1), ReductionOrder::kRank), ElementsAre(2, 3, 6));
  EXPECT_TRUE(limit.Cancel(PushId(3)));  // of 8
  limit.Release(SessionId(2));
  Wait(limit, 4);
  EXPECT_THAT(LetIn(limit, Of(1), ReductionOrder::kRank), ElementsAre(4));
  Wait(limit, 1);
  EXPECT_THAT(LetIn(limit, Of(1), ReductionOrder::kRank), ElementsAre(1));
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit, Of(9), ReductionOrder::kRank), ElementsAre(9));
}

TEST_F(InFlightLimitTest, InRankOrderTheNextEntersIfTheLowestHasAPushInFlight) {
  InFlightLimit limit(4);
  for (const uint64_t session : {2, 1, 1}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1), ReductionOrder::kRank), ElementsAre(1, 2));
  EXPECT_TRUE(limit.Waits(PushId(3)));
}

TEST_F(InFlightLimitTest, AnotherCapacityCountsFromTheNextPush) {
  InFlightLimit limit(4);
  for (const uint64_t session : {1, 2, 3, 4, 5}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 2, 3));
  limit.SetCapacity(3);
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit), IsEmpty());
  limit.Release(SessionId(2));
  EXPECT_THAT(LetIn(limit), ElementsAre(4));
  limit.SetCapacity(4);
  EXPECT_THAT(LetIn(limit), ElementsAre(5));
}

// All that are in flight may be held until the gradient of the lowest rank is there.
TEST_F(InFlightLimitTest, TheReservedVectorIsFreeEvenIfASmallerCapacityIsExceeded) {
  InFlightLimit limit(10);
  for (const uint64_t session : {5, 6, 7, 8, 9}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(5, 6, 7, 8, 9));
  limit.SetCapacity(3);
  for (const uint64_t session : {4, 1, 2}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(1));
  EXPECT_THAT(LetIn(limit, Of(1)), IsEmpty());
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit, Of(2)), ElementsAre(2));
}

// A push is in flight until its gradient is added, though the step waits for the next rank already.
TEST_F(InFlightLimitTest, NoMoreThanOnePushIsBeyondASmallerCapacity) {
  InFlightLimit limit(10);
  for (const uint64_t session : {5, 6, 7, 8}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(5, 6, 7, 8));
  limit.SetCapacity(4);
  for (const uint64_t session : {1, 2, 3}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(1));
  EXPECT_THAT(LetIn(limit, Of(2)), IsEmpty());
  limit.SetCapacity(3);
  EXPECT_THAT(LetIn(limit, Of(2)), IsEmpty());
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit, Of(2)), ElementsAre(2));
  EXPECT_THAT(LetIn(limit, Of(3)), IsEmpty());
}

TEST_F(InFlightLimitTest, ALargerCapacityEndsTheExcess) {
  InFlightLimit limit(10);
  for (const uint64_t session : {5, 6, 7}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(5, 6, 7));
  limit.SetCapacity(3);
  limit.SetCapacity(5);
  for (const uint64_t session : {8, 9, 1}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(8, 1));
  limit.SetCapacity(4);
  Wait(limit, 2);
  EXPECT_THAT(LetIn(limit, Of(2)), ElementsAre(2));
}

TEST_F(InFlightLimitTest, TheSameCapacityAgainFreesNothing) {
  InFlightLimit limit(3);
  for (const uint64_t session : {5, 6}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(5, 6));
  Wait(limit, 1);
  EXPECT_THAT(LetIn(limit, Of(1)), ElementsAre(1));
  limit.SetCapacity(3);
  Wait(limit, 2);
  EXPECT_THAT(LetIn(limit, Of(2)), IsEmpty());
}

TEST_F(InFlightLimitTest, HasOnePushOfASessionAtATime) {
  InFlightLimit limit(10);
  Wait(limit, 1);
  Wait(limit, 1);
  Wait(limit, 2);
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 2));
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
}

TEST_F(InFlightLimitTest, LetsAFewPushesOfASessionWait) {
  InFlightLimit limit(10);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(limit.MayWait(SessionId(1)));
    Wait(limit, 1);
  }
  EXPECT_FALSE(limit.MayWait(SessionId(1)));
  EXPECT_TRUE(limit.MayWait(SessionId(2)));
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  EXPECT_TRUE(limit.MayWait(SessionId(1)));
}

TEST_F(InFlightLimitTest, ForgetsAWaitingPushThatIsCancelled) {
  InFlightLimit limit(10);
  for (const uint64_t session : {1, 2, 3}) Wait(limit, session);
  EXPECT_TRUE(limit.Waits(PushId(2)));
  EXPECT_TRUE(limit.Cancel(PushId(2)));
  EXPECT_FALSE(limit.Waits(PushId(2)));
  EXPECT_FALSE(limit.Cancel(PushId(2)));
  EXPECT_FALSE(limit.Cancel(PushId()));
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 3));
  EXPECT_FALSE(limit.Cancel(PushId(1)));
}

TEST_F(InFlightLimitTest, CancelsThoseInsideWhoseSessionEndedOnce) {
  InFlightLimit limit(10);
  for (const uint64_t session : {1, 2, 3}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 2, 3));
  Wait(limit, 4);
  CancelAllBut(limit, 2);
  EXPECT_THAT(cancelled_, ElementsAre(1, 3));
  cancelled_.clear();
  CancelAllBut(limit, 2);
  EXPECT_THAT(cancelled_, IsEmpty());
}

// Its memory is in use until its stream has ended.
TEST_F(InFlightLimitTest, ACancelledPushKeepsItsRoomUntilItIsOver) {
  InFlightLimit limit(2);
  Wait(limit, 1);
  Wait(limit, 2);
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  CancelAllBut(limit, 2);
  EXPECT_THAT(LetIn(limit), IsEmpty());
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit), ElementsAre(2));
}

TEST_F(InFlightLimitTest, GivesBackThoseThatWaitAndHaveNoBusinessThereAnyMore) {
  InFlightLimit limit(2);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  std::vector<uint64_t> taken;
  const auto odd = [](const Arriving& push) { return push.header.session.value() % 2 == 1; };
  for (const Arriving& push : limit.TakeWaiting(odd)) taken.push_back(push.header.session.value());
  EXPECT_THAT(taken, ElementsAre(3));
  limit.Release(SessionId(1));
  EXPECT_THAT(LetIn(limit), ElementsAre(2));
  limit.Release(SessionId(2));
  EXPECT_THAT(LetIn(limit), ElementsAre(4));
}

TEST_F(InFlightLimitTest, NeedsNoCancel) {
  InFlightLimit limit(2);
  Arriving push;
  push.header.session = SessionId(1);
  limit.Wait(std::move(push));
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  CancelAllBut(limit, 2);
}

TEST_F(InFlightLimitTest, KnowsHowMuchOfAPushHasArrived) {
  InFlightLimit limit(2);
  Wait(limit, 1);
  EXPECT_THAT(LetIn(limit), ElementsAre(1));
  EXPECT_EQ(limit.BytesOf(SessionId(1)), 0u);
  PendingPush push(PushId(1), PushHeader(), std::make_shared<const Layout>(ParametersOnly(4)),
                   std::make_shared<std::atomic<uint64_t>>(0));
  limit.NoteArrived(SessionId(1), push.arrived());
  EXPECT_EQ(limit.BytesOf(SessionId(1)), 0u);
  ASSERT_THAT(push.Add(ChunkOf(1, {1, 2, 3})), IsOk());
  EXPECT_EQ(limit.BytesOf(SessionId(1)), 12u);
  EXPECT_EQ(limit.BytesOf(SessionId(2)), 0u);
  limit.Release(SessionId(1));
  EXPECT_EQ(limit.BytesOf(SessionId(1)), 0u);
}

TEST_F(InFlightLimitTest, DescribesWhatIsInFlightInBytes) {
  InFlightLimit limit(3);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(limit, session);
  limit.SetJournaled(1);
  LetIn(limit);
  const InFlightStatus status = limit.Describe(100);
  EXPECT_EQ(status.bytes, 200u);  // a push and a step; the last vector is reserved
  EXPECT_EQ(status.limit, 300u);
  EXPECT_EQ(status.waiting, 3u);
}

TEST_F(InFlightLimitTest, HearsOfSessionsWhoseBytesArrive) {
  InFlightLimit limit(10);
  for (const uint64_t session : {1, 2, 3}) Wait(limit, session);
  LetIn(limit);
  const auto of_1 = std::make_shared<std::atomic<uint64_t>>(0);
  const auto of_2 = std::make_shared<std::atomic<uint64_t>>(0);
  limit.NoteArrived(SessionId(1), of_1);
  limit.NoteArrived(SessionId(2), of_2);
  EXPECT_THAT(limit.TakeHeard(), IsEmpty());
  *of_1 = 4;
  *of_2 = 4;
  EXPECT_THAT(limit.TakeHeard(), ElementsAre(SessionId(1), SessionId(2)));
  EXPECT_THAT(limit.TakeHeard(), IsEmpty());
  *of_1 = 8;
  *of_2 = 8;
  limit.NoteWhole(SessionId(1));
  EXPECT_THAT(limit.TakeHeard(), ElementsAre(SessionId(2)));
}

TEST_F(InFlightLimitTest, ServesThoseWhosePushWaitsOrIsWhole) {
  InFlightLimit limit(3);
  for (const uint64_t session : {1, 2, 3, 2}) Wait(limit, session);
  EXPECT_THAT(LetIn(limit), ElementsAre(1, 2));
  EXPECT_THAT(limit.Served(), ElementsAre(SessionId(3)));  // 2 waits for itself
  limit.NoteWhole(SessionId(2));
  EXPECT_THAT(limit.Served(), ElementsAre(SessionId(2), SessionId(3)));
  limit.Release(SessionId(2));
  EXPECT_THAT(limit.Served(), ElementsAre(SessionId(3), SessionId(2)));
}

}  // namespace
}  // namespace sluice

#include "server/admission/in_flight_limit.h"

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

// Sessions have the rank of their number.
class InFlightLimitTest : public ::testing::Test {
 protected:
  void Wait(InFlightLimit& room, uint64_t session) {
    Arriving push;
    push.header.session = SessionId(session);
    push.rank = Of(session);
    push.cancel = [this, session] { cancelled_.push_back(session); };
    room.Wait(std::move(push));
  }

  // All that may come in, in turn, by their sessions.
  static std::vector<uint64_t> LetIn(InFlightLimit& room,
                                     const absl::optional<Rank>& first_missing = kNobody) {
    std::vector<uint64_t> in;
    while (const absl::optional<Arriving> push = room.LetIn(first_missing)) {
      in.push_back(push->header.session.value());
    }
    return in;
  }

  void CancelAllBut(InFlightLimit& room, uint64_t alive) {
    Completions completions;
    room.CancelEnded([alive](SessionId session) { return session == SessionId(alive); },
                     &completions);
    EXPECT_THAT(cancelled_, IsEmpty());  // only once the completions run
    completions.Run();
  }

  std::vector<uint64_t> cancelled_;
};

TEST_F(InFlightLimitTest, LetsPushesInInTheOrderTheyCame) {
  InFlightLimit room(10);
  EXPECT_TRUE(room.empty());
  for (const uint64_t session : {3, 1, 2}) Wait(room, session);
  EXPECT_FALSE(room.empty());
  EXPECT_THAT(LetIn(room), ElementsAre(3, 1, 2));
  EXPECT_FALSE(room.empty());
  for (const uint64_t session : {3, 1, 2}) room.Release(SessionId(session));
  EXPECT_TRUE(room.empty());
}

TEST_F(InFlightLimitTest, KeepsTheOthersWaitingUntilSomeoneLeaves) {
  InFlightLimit room(3);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(room, session);
  EXPECT_THAT(LetIn(room), ElementsAre(1, 2));
  room.Release(SessionId(2));
  EXPECT_THAT(LetIn(room), ElementsAre(3));
  room.Release(SessionId(1));
  room.Release(SessionId(3));
  EXPECT_THAT(LetIn(room), ElementsAre(4));
}

TEST_F(InFlightLimitTest, KeepsTheLastVectorForWhomTheStepWaitsFor) {
  InFlightLimit room(2);
  for (const uint64_t session : {3, 2, 1}) Wait(room, session);
  EXPECT_THAT(LetIn(room, Of(0)), ElementsAre(3));
  EXPECT_THAT(LetIn(room, Of(1)), ElementsAre(1));
  EXPECT_THAT(LetIn(room, Of(2)), IsEmpty());
  room.Release(SessionId(1));
  EXPECT_THAT(LetIn(room, Of(2)), ElementsAre(2));
}

TEST_F(InFlightLimitTest, HasOnePushOfASessionAtATime) {
  InFlightLimit room(10);
  Wait(room, 1);
  Wait(room, 1);
  Wait(room, 2);
  EXPECT_THAT(LetIn(room), ElementsAre(1, 2));
  room.Release(SessionId(1));
  EXPECT_THAT(LetIn(room), ElementsAre(1));
}

TEST_F(InFlightLimitTest, CancelsThoseInsideWhoseSessionEndedOnce) {
  InFlightLimit room(10);
  for (const uint64_t session : {1, 2, 3}) Wait(room, session);
  EXPECT_THAT(LetIn(room), ElementsAre(1, 2, 3));
  Wait(room, 4);
  CancelAllBut(room, 2);
  EXPECT_THAT(cancelled_, ElementsAre(1, 3));
  cancelled_.clear();
  CancelAllBut(room, 2);
  EXPECT_THAT(cancelled_, IsEmpty());
}

// Its memory is used until its stream is over.
TEST_F(InFlightLimitTest, ACancelledPushKeepsItsRoomUntilItIsOver) {
  InFlightLimit room(2);
  Wait(room, 1);
  Wait(room, 2);
  EXPECT_THAT(LetIn(room), ElementsAre(1));
  CancelAllBut(room, 2);
  EXPECT_THAT(LetIn(room), IsEmpty());
  room.Release(SessionId(1));
  EXPECT_THAT(LetIn(room), ElementsAre(2));
}

TEST_F(InFlightLimitTest, GivesBackThoseThatWaitAndHaveNoBusinessThereAnyMore) {
  InFlightLimit room(2);
  for (const uint64_t session : {1, 2, 3, 4}) Wait(room, session);
  EXPECT_THAT(LetIn(room), ElementsAre(1));
  std::vector<uint64_t> taken;
  const auto odd = [](const Arriving& push) { return push.header.session.value() % 2 == 1; };
  for (const Arriving& push : room.TakeWaiting(odd)) taken.push_back(push.header.session.value());
  EXPECT_THAT(taken, ElementsAre(3));
  room.Release(SessionId(1));
  EXPECT_THAT(LetIn(room), ElementsAre(2));
  room.Release(SessionId(2));
  EXPECT_THAT(LetIn(room), ElementsAre(4));
}

TEST_F(InFlightLimitTest, NeedsNoCancel) {
  InFlightLimit room(2);
  Arriving push;
  push.header.session = SessionId(1);
  room.Wait(std::move(push));
  EXPECT_THAT(LetIn(room), ElementsAre(1));
  CancelAllBut(room, 2);
}

TEST_F(InFlightLimitTest, KnowsHowMuchOfAPushHasArrived) {
  InFlightLimit room(2);
  Wait(room, 1);
  EXPECT_THAT(LetIn(room), ElementsAre(1));
  EXPECT_EQ(room.BytesOf(SessionId(1)), 0u);
  PendingPush push(PushHeader(), std::make_shared<const Layout>(ParametersOnly(4)));
  room.NoteArrived(SessionId(1), push.arrived());
  EXPECT_EQ(room.BytesOf(SessionId(1)), 0u);
  ASSERT_THAT(push.Add(ChunkOf(1, {1, 2, 3})), IsOk());
  EXPECT_EQ(room.BytesOf(SessionId(1)), 12u);
  EXPECT_EQ(room.BytesOf(SessionId(2)), 0u);
  room.Release(SessionId(1));
  EXPECT_EQ(room.BytesOf(SessionId(1)), 0u);
}

}  // namespace
}  // namespace sluice

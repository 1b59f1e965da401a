#include "server/rpc/lane_table.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const SessionId kSession(7);

class LaneTableTest : public ::testing::Test {
 protected:
  LaneTableTest() { table_.Begin(kSession); }

  static LaneName Call(uint64_t call) { return {kSession, call}; }

  // A lane that writes down what it is told.
  struct TestLane {
    std::string told = "nothing yet";
  };

  absl::Status Find(uint64_t call, TestLane& lane) {
    return table_.Find(Call(call), &lane, [&lane](const std::shared_ptr<int>& found) {
      lane.told = found == nullptr ? "it has ended" : std::to_string(*found);
    });
  }

  void Open(uint64_t call, int value) { table_.Open(Call(call), std::make_shared<int>(value)); }

  LaneTable<int> table_;
};

TEST_F(LaneTableTest, ALaneFindsTheCallThatIsThere) {
  Open(1, 10);
  Open(2, 20);
  TestLane a, b;
  EXPECT_THAT(Find(1, a), IsOk());
  EXPECT_THAT(Find(2, b), IsOk());
  EXPECT_EQ(a.told, "10");
  EXPECT_EQ(b.told, "20");
}

TEST_F(LaneTableTest, ALaneThatIsFirstWaitsForItsCall) {
  TestLane a, b;
  EXPECT_THAT(Find(2, a), IsOk());
  EXPECT_THAT(Find(2, b), IsOk());
  Open(1, 10);
  EXPECT_EQ(a.told, "nothing yet");
  Open(2, 20);
  EXPECT_EQ(a.told, "20");
  EXPECT_EQ(b.told, "20");
}

TEST_F(LaneTableTest, ALaneThatComesLateIsToldThatItsCallHasEnded) {
  Open(3, 30);
  table_.Close(Call(3));
  TestLane late, older;
  EXPECT_THAT(Find(3, late), IsOk());
  EXPECT_EQ(late.told, "it has ended");
  EXPECT_THAT(Find(2, older), IsOk());
  EXPECT_EQ(older.told, "it has ended");
}

TEST_F(LaneTableTest, ALaneThatWaitsIsToldIfItsCallEndsWithoutHavingBeenLetIn) {
  TestLane lane, older, newer;
  EXPECT_THAT(Find(4, lane), IsOk());
  EXPECT_THAT(Find(3, older), IsOk());
  EXPECT_THAT(Find(5, newer), IsOk());
  table_.Close(Call(4));
  EXPECT_EQ(lane.told, "it has ended");
  EXPECT_EQ(older.told, "it has ended");
  EXPECT_EQ(newer.told, "nothing yet");
}

TEST_F(LaneTableTest, AnOlderCallStaysOpenBesideANewerOne) {
  Open(1, 10);
  Open(2, 20);
  table_.Close(Call(2));
  TestLane lane;
  EXPECT_THAT(Find(1, lane), IsOk());
  EXPECT_EQ(lane.told, "10");
}

TEST_F(LaneTableTest, ALaneThatIsCancelledIsToldNothing) {
  TestLane lane, other;
  EXPECT_THAT(Find(1, lane), IsOk());
  EXPECT_THAT(Find(1, other), IsOk());
  EXPECT_TRUE(table_.Cancel(Call(1), &lane));
  EXPECT_FALSE(table_.Cancel(Call(1), &lane));
  Open(1, 10);
  EXPECT_EQ(lane.told, "nothing yet");
  EXPECT_EQ(other.told, "10");
  EXPECT_FALSE(table_.Cancel(Call(1), &other));
}

TEST_F(LaneTableTest, TheEndOfASessionEndsTheWait) {
  TestLane lane, after;
  EXPECT_THAT(Find(1, lane), IsOk());
  table_.End(kSession);
  EXPECT_EQ(lane.told, "it has ended");
  EXPECT_THAT(Find(1, after), IsError(Reason::kUnknownSession, HasSubstr("session 7 has ended")));
  Open(1, 10);
  EXPECT_EQ(after.told, "nothing yet");
}

TEST_F(LaneTableTest, ASessionHasBoundedlyManyLanesThatWait) {
  constexpr size_t kMost = LaneTable<int>::kMostWaiting;
  TestLane lanes[kMost];
  for (TestLane& lane : lanes) EXPECT_THAT(Find(1, lane), IsOk());
  TestLane more;
  EXPECT_THAT(Find(2, more), IsError(Reason::kBadArgument, HasSubstr("16 lanes of this session")));
  Open(1, 10);
  EXPECT_THAT(Find(2, more), IsOk());
}

}  // namespace
}  // namespace sluice

#include "server/rpc/turns.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two calls at a time. A call is identified by the address of an element of calls_, and each is of
// another owner unless a test says so.
class TurnsTest : public ::testing::Test {
 protected:
  Turn Add(int call) { return Add(call, {absl::StrCat("owner of ", call), 1}); }
  Turn Add(int call, TurnOwner owner) {
    const Turn turn = turns_.Add(&calls_[call], std::move(owner),
                                 [this, call] { heard_.push_back(absl::StrCat("go ", call)); });
    if (turn == Turn::kNow) heard_.push_back(absl::StrCat("now ", call));
    return turn;
  }
  void Leave(int call) { turns_.Leave(&calls_[call]); }
  bool Cancel(int call) { return turns_.Cancel(&calls_[call]); }

  std::vector<int> calls_ = std::vector<int>(5);
  std::vector<std::string> heard_;
  Turns turns_{2};
};

TEST_F(TurnsTest, TwoGoAtOnceAndTheOthersOneByOneInTheirOrder) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Add(i), i < 2 ? Turn::kNow : Turn::kLater);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1"));
  Leave(1);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 2"));
  Leave(0);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 2", "go 3"));
  for (int i : {2, 3, 4}) Leave(i);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 2", "go 3", "go 4"));
}

TEST_F(TurnsTest, OneThatLeavesWhileItWaitsIsPassedOver) {
  for (int i = 0; i < 4; ++i) Add(i);
  Leave(2);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1"));
  Leave(0);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 3"));
  Leave(1);
  Leave(3);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 3"));
}

TEST_F(TurnsTest, OneThatHasLeftTakesNoFurtherPlace) {
  Leave(0);
  EXPECT_THAT(heard_, IsEmpty());
  for (int i = 0; i < 3; ++i) Add(i);
  Leave(0);
  Leave(0);
  EXPECT_EQ(Add(3), Turn::kLater);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 2"));
}

TEST_F(TurnsTest, OnlyOneThatWaitsCanBeCancelledAndThenItsTurnNeverComes) {
  for (int i = 0; i < 4; ++i) Add(i);
  EXPECT_FALSE(Cancel(0));  // it has its turn
  EXPECT_TRUE(Cancel(2));
  EXPECT_FALSE(Cancel(2));
  EXPECT_FALSE(Cancel(4));  // it was never here
  Leave(2);
  Leave(0);
  EXPECT_FALSE(Cancel(3));  // its turn has come
  Leave(1);
  Leave(3);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 3"));
}

TEST_F(TurnsTest, AnOwnerHasNoMoreCallsThanItMay) {
  const TurnOwner owner = {"one", 2};
  EXPECT_EQ(Add(0, owner), Turn::kNow);
  EXPECT_EQ(Add(1, {"other", 2}), Turn::kNow);
  EXPECT_EQ(Add(2, owner), Turn::kLater);
  EXPECT_EQ(Add(3, owner), Turn::kRefused);
  Leave(3);  // does nothing
  EXPECT_TRUE(Cancel(2));
  EXPECT_EQ(Add(3, owner), Turn::kLater);
  EXPECT_EQ(Add(4, owner), Turn::kRefused);
  Leave(0);
  EXPECT_EQ(Add(4, owner), Turn::kLater);
  Leave(1);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1", "go 3", "go 4"));
}

// A search among the waiting calls would take minutes here.
TEST_F(TurnsTest, AMillionThatWaitLeaveInAnyOrder) {
  constexpr int kCalls = 1'000'000;
  calls_.resize(kCalls);
  for (int i = 0; i < kCalls; ++i) Add(i, {"all", kCalls});
  for (int i = kCalls / 2; i < kCalls; ++i) EXPECT_TRUE(Cancel(i));
  for (int i = kCalls / 2; i-- > 2;) Leave(i);
  EXPECT_THAT(heard_, ElementsAre("now 0", "now 1"));
}

}  // namespace
}  // namespace sluice

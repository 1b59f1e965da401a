#include "server/rpc/join_turns.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two calls at a time. A call is identified by the address of an element of calls_.
class JoinTurnsTest : public ::testing::Test {
 protected:
  void Wait(int call) {
    turns_.Wait(&calls_[call], [this, call] { heard_.push_back(absl::StrCat("go ", call)); });
  }
  void Leave(int call) { turns_.Leave(&calls_[call]); }

  int calls_[5] = {};
  std::vector<std::string> heard_;
  JoinTurns turns_{2};
};

TEST_F(JoinTurnsTest, TwoGoAtOnceAndTheOthersOneByOneInTheirOrder) {
  for (int i = 0; i < 5; ++i) Wait(i);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1"));
  Leave(1);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2"));
  Leave(0);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2", "go 3"));
  for (int i : {2, 3, 4}) Leave(i);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2", "go 3", "go 4"));
}

TEST_F(JoinTurnsTest, OneThatLeavesWhileItWaitsIsPassedOver) {
  for (int i = 0; i < 4; ++i) Wait(i);
  Leave(2);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1"));
  Leave(0);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 3"));
  Leave(1);
  Leave(3);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 3"));
}

TEST_F(JoinTurnsTest, OneThatHasLeftTakesNoFurtherPlace) {
  Leave(0);
  EXPECT_THAT(heard_, IsEmpty());
  for (int i = 0; i < 3; ++i) Wait(i);
  Leave(0);
  Leave(0);
  Wait(3);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2"));
}

}  // namespace
}  // namespace sluice

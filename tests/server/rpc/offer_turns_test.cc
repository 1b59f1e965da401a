#include "server/rpc/offer_turns.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sessions 1 to 3 are open. An offer is identified by the address of an element of offers_.
class OfferTurnsTest : public ::testing::Test {
 protected:
  OfferTurnsTest() {
    for (uint64_t i = 1; i <= 3; ++i) turns_.Begin(SessionId(i));
  }

  absl::Status Wait(int offer, uint64_t session) {
    return turns_.Wait({&offers_[offer], SessionId(session),
                        [this, offer] { heard_.push_back(absl::StrCat("go ", offer)); },
                        [this, offer] { heard_.push_back(absl::StrCat("end ", offer)); }});
  }

  int offers_[4] = {};
  std::vector<std::string> heard_;
  OfferTurns turns_;
};

TEST_F(OfferTurnsTest, TakesOneOfferAfterTheOther) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Wait(i, 1 + i), IsOk());
  EXPECT_THAT(heard_, ElementsAre("go 0"));
  turns_.Leave(&offers_[0]);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1"));
  turns_.Leave(&offers_[1]);
  turns_.Leave(&offers_[2]);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2"));
  EXPECT_THAT(Wait(3, 1), IsOk());
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 1", "go 2", "go 3"));
}

TEST_F(OfferTurnsTest, AnOfferThatIsCancelledWaitsNoMore) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Wait(i, 1 + i), IsOk());
  EXPECT_FALSE(turns_.Cancel(&offers_[0]));  // it has its turn
  EXPECT_TRUE(turns_.Cancel(&offers_[1]));
  EXPECT_FALSE(turns_.Cancel(&offers_[1]));
  turns_.Leave(&offers_[1]);
  turns_.Leave(&offers_[0]);
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 2"));
}

TEST_F(OfferTurnsTest, TellsAllOffersOfASessionItsEnd) {
  EXPECT_THAT(Wait(0, 1), IsOk());
  EXPECT_THAT(Wait(1, 2), IsOk());
  EXPECT_THAT(Wait(2, 1), IsOk());
  turns_.End(SessionId(1));
  EXPECT_THAT(heard_, ElementsAre("go 0", "end 0", "end 2"));
  EXPECT_THAT(Wait(3, 1), IsError(Reason::kUnknownSession, HasSubstr("session 1 has ended")));
}

TEST_F(OfferTurnsTest, AnOfferThatHasLeftIsNotToldTheEndOfItsSession) {
  EXPECT_THAT(Wait(0, 1), IsOk());
  EXPECT_THAT(Wait(1, 1), IsOk());
  EXPECT_TRUE(turns_.Cancel(&offers_[1]));
  EXPECT_THAT(Wait(2, 1), IsOk());
  turns_.Leave(&offers_[0]);
  turns_.End(SessionId(1));
  turns_.Leave(&offers_[2]);
  turns_.End(SessionId(1));
  EXPECT_THAT(heard_, ElementsAre("go 0", "go 2", "end 2"));
}

TEST_F(OfferTurnsTest, TheTurnOfAnOfferWhoseSessionHasEndedComesUntilItLeaves) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Wait(i, 1 + i), IsOk());
  turns_.End(SessionId(2));
  turns_.Leave(&offers_[0]);
  turns_.Leave(&offers_[1]);
  EXPECT_THAT(heard_, ElementsAre("go 0", "end 1", "go 1", "go 2"));
}

TEST_F(OfferTurnsTest, TakesTwoOffersOfASession) {
  EXPECT_THAT(Wait(0, 1), IsOk());
  EXPECT_THAT(Wait(1, 1), IsOk());
  EXPECT_THAT(Wait(2, 1), IsError(Reason::kBadArgument,
                                  HasSubstr("session 1 has 2 offers of initial parameters")));
  EXPECT_THAT(Wait(3, 2), IsOk());
}

}  // namespace
}  // namespace sluice

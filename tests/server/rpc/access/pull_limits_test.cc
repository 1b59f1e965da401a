#include "server/rpc/access/pull_limits.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Turn = PullPermit::Turn;
using Permit = std::shared_ptr<PullPermit>;

// Sessions from 1 are workers', sessions from 100 are observers'.
class PullLimitsTest : public ::testing::Test {
 protected:
  PullLimitsTest() {
    for (uint64_t i = 1; i < 10; ++i) limits_.Begin(SessionId(i), SessionRole::kWorker);
    for (uint64_t i = 100; i < 200; ++i) limits_.Begin(SessionId(i), SessionRole::kObserver);
  }

  // A pull whose end is noted as its session.
  Permit Begin(uint64_t session) {
    auto permit = limits_.Permit(SessionId(session));
    EXPECT_THAT(permit, IsOk());
    (*permit)->OnEnd([this, session] { ended_.push_back(session); });
    return *std::move(permit);
  }

  Turn Hold(const Permit& pull, uint64_t step, const std::string& encoding = "") {
    return pull->Hold({Step(step), encoding}, [this, step] { again_.push_back(step); });
  }

  // Pulls of different workers that hold as many steps as may be held, from step 1 on.
  std::vector<Permit> HoldAll() {
    std::vector<Permit> pulls;
    for (uint64_t i = 1; i <= PullLimits::kStepsOfWorkers; ++i) {
      pulls.push_back(Begin(i));
      EXPECT_EQ(Hold(pulls.back(), i), Turn::kNow);
    }
    return pulls;
  }

  PullLimits limits_;
  std::vector<uint64_t> ended_;  // sessions
  std::vector<uint64_t> again_;  // steps that pulls wanted before they waited
};

TEST_F(PullLimitsTest, PermitsAFewOfEachSession) {
  std::vector<Permit> of_observer;
  for (int i = 0; i < 8; ++i) of_observer.push_back(Begin(100));
  const auto of_another = Begin(101);
  EXPECT_THAT(
      limits_.Permit(SessionId(100)),
      IsError(Reason::kTooManyPulls, HasSubstr("session 100 has 8 pulls under way, the limit")));
  of_observer.pop_back();
  EXPECT_THAT(limits_.Permit(SessionId(100)), IsOk());
  std::vector<Permit> of_worker;
  for (int i = 0; i < 64; ++i) of_worker.push_back(Begin(1));
  EXPECT_THAT(limits_.Permit(SessionId(1)),
              IsError(Reason::kTooManyPulls, HasSubstr("has 64 pulls")));
}

TEST_F(PullLimitsTest, APullThatSendsOnlyAShortAnswerCountsNoLongerAndEndsOnce) {
  std::vector<Permit> pulls;
  for (size_t i = 0; i < PullLimits::kMostOfWorker; ++i) pulls.push_back(Begin(1));
  EXPECT_THAT(limits_.Permit(SessionId(1)), IsError(Reason::kTooManyPulls, HasSubstr("has 64")));
  pulls.front()->StopCounting();
  pulls.push_back(Begin(1));
  pulls.erase(pulls.begin());
  EXPECT_THAT(limits_.Permit(SessionId(1)), IsError(Reason::kTooManyPulls, HasSubstr("has 64")));
}

TEST_F(PullLimitsTest, PermitsAFewOfAllObservers) {
  std::vector<Permit> pulls;
  for (uint64_t i = 0; i < 256; ++i) pulls.push_back(Begin(100 + i / 8));
  EXPECT_THAT(limits_.Permit(SessionId(150)),
              IsError(Reason::kTooManyPulls, HasSubstr("the observers have 256 pulls under way")));
  EXPECT_THAT(limits_.Permit(SessionId(1)), IsOk());
  pulls.pop_back();
  EXPECT_THAT(limits_.Permit(SessionId(150)), IsOk());
}

TEST_F(PullLimitsTest, CountsASessionThatIsNotOpenAsAnObservers) {
  limits_.End(SessionId(1));
  std::vector<Permit> pulls;
  for (int i = 0; i < 8; ++i) pulls.push_back(Begin(1));
  EXPECT_THAT(limits_.Permit(SessionId(1)),
              IsError(Reason::kTooManyPulls, HasSubstr("has 8 pulls")));
}

TEST_F(PullLimitsTest, AWorkersPullWaitsWhileOthersHoldTooManySteps) {
  std::vector<Permit> pulls = HoldAll();
  const auto late = Begin(5);
  const auto later = Begin(6);
  EXPECT_EQ(Hold(late, 5), Turn::kLater);
  EXPECT_EQ(Hold(later, 6), Turn::kLater);
  EXPECT_THAT(again_, IsEmpty());
  pulls.erase(pulls.begin() + 1);
  EXPECT_THAT(again_, ElementsAre(5, 6));
  // Both now want the newest step, and share it.
  EXPECT_EQ(Hold(late, 7), Turn::kNow);
  EXPECT_EQ(Hold(later, 7), Turn::kNow);
  EXPECT_EQ(Hold(Begin(7), 8), Turn::kLater);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(PullLimitsTest, APullOfAStepThatIsHeldNeedsNoOther) {
  const std::vector<Permit> pulls = HoldAll();
  EXPECT_EQ(Hold(Begin(5), 3), Turn::kNow);
  // Each encoding of a step has memory of its own.
  EXPECT_EQ(Hold(Begin(6), 3, "int8"), Turn::kLater);
}

TEST_F(PullLimitsTest, AStepIsHeldUntilItsLastPullEnds) {
  std::vector<Permit> pulls = HoldAll();
  auto second = Begin(5);
  EXPECT_EQ(Hold(second, 1), Turn::kNow);
  const auto late = Begin(6);
  EXPECT_EQ(Hold(late, 5), Turn::kLater);
  pulls[0] = nullptr;
  EXPECT_THAT(again_, IsEmpty());
  second = nullptr;
  EXPECT_THAT(again_, ElementsAre(5));
}

TEST_F(PullLimitsTest, OneWorkerHoldsTwoSteps) {
  auto first = Begin(1);
  const auto second = Begin(1);
  const auto third = Begin(1);
  EXPECT_EQ(Hold(first, 1), Turn::kNow);
  EXPECT_EQ(Hold(second, 2), Turn::kNow);
  EXPECT_EQ(Hold(third, 3), Turn::kLater);
  const auto of_another = Begin(2);
  EXPECT_EQ(Hold(of_another, 1), Turn::kNow);
  // Step 1 is still held, but not by this worker.
  first = nullptr;
  EXPECT_THAT(again_, ElementsAre(3));
  EXPECT_EQ(Hold(third, 3), Turn::kNow);
}

TEST_F(PullLimitsTest, APullThatIsCancelledWaitsNoMore) {
  std::vector<Permit> pulls = HoldAll();
  auto late = Begin(5);
  EXPECT_FALSE(pulls[0]->Cancel());
  EXPECT_EQ(Hold(late, 5), Turn::kLater);
  EXPECT_TRUE(late->Cancel());
  EXPECT_FALSE(late->Cancel());
  pulls.clear();
  EXPECT_THAT(again_, IsEmpty());
  // Its caller may cancel it just before it would wait.
  EXPECT_EQ(Hold(late, 6), Turn::kEnded);
}

TEST_F(PullLimitsTest, ObserversThatReadSlowlyHoldUpNoWorker) {
  const auto a = Begin(100);
  const auto b = Begin(101);
  EXPECT_EQ(Hold(a, 1), Turn::kNow);
  EXPECT_EQ(Hold(b, 2), Turn::kNow);
  EXPECT_THAT(HoldAll().size(), PullLimits::kStepsOfWorkers);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(PullLimitsTest, AnObserversPullEndsThoseOfTheOldestStep) {
  const auto a = Begin(100);
  const auto same = Begin(101);
  const auto b = Begin(102);
  EXPECT_EQ(Hold(a, 1), Turn::kNow);
  EXPECT_EQ(Hold(same, 1), Turn::kNow);
  EXPECT_EQ(Hold(b, 2), Turn::kNow);
  EXPECT_EQ(Hold(Begin(103), 3), Turn::kNow);
  EXPECT_THAT(ended_, ::testing::UnorderedElementsAre(100, 101));
  a->OnEnd([this] { ended_.push_back(0); });  // a lane that comes too late
  EXPECT_EQ(ended_.back(), 0u);
}

TEST_F(PullLimitsTest, AnObserverThatPullsAgainEndsItsOwnPullFirst) {
  const auto honest = Begin(100);
  const auto greedy = Begin(101);
  const auto again = Begin(101);
  EXPECT_EQ(Hold(honest, 1), Turn::kNow);
  EXPECT_EQ(Hold(greedy, 2), Turn::kNow);
  EXPECT_EQ(Hold(again, 3), Turn::kNow);
  EXPECT_THAT(ended_, ElementsAre(101));
}

}  // namespace
}  // namespace sluice

#include "server/holder/told_names.h"

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr SessionId kSession(1);

PushName Push(uint64_t sequence, uint32_t attempt) {
  return {kSession, Sequence(sequence), attempt};
}
PullName Pull(uint64_t number) { return {kSession, number}; }

auto IsCancelled() { return HasCode(absl::StatusCode::kCancelled, ::testing::_); }

TEST(ToldNamesTest, NoPushBelowTheLatestIsAdmitted) {
  ToldNames told;
  EXPECT_THAT(told.WhyNever(Push(1, 0)), IsOk());
  told.GoOnTo(Push(2, 3));
  told.GoOnTo(Push(9, 1));  // late: it takes nothing back
  EXPECT_THAT(told.WhyNever(Push(2, 3)), IsCancelled());
  EXPECT_THAT(told.WhyNever(Push(10, 1)), IsCancelled());
  EXPECT_THAT(told.WhyNever(Push(0, 4)), IsOk()) << "an offer, after a push that was too early";
  EXPECT_THAT(told.WhyNever(Push(2, 4)), IsOk());
  EXPECT_THAT(told.WhyNever(PushName{SessionId(2), Sequence(1), 0}), IsOk());
}

TEST(ToldNamesTest, DropsPullsUpToANumber) {
  ToldNames told;
  EXPECT_THAT(told.WhyNever(Pull(1)), IsOk());
  told.Drop(Pull(5));
  told.Drop(Pull(4));
  EXPECT_THAT(told.WhyNever(Pull(5)), IsCancelled());
  EXPECT_THAT(told.WhyNever(Pull(6)), IsOk());
  EXPECT_THAT(told.WhyNever(PullName{SessionId(2), 1}), IsOk());
  EXPECT_THAT(told.WhyNever(Push(1, 0)), IsOk());
}

TEST(ToldNamesTest, KeepsNothingOfAnEndedSessionButItsId) {
  ToldNames told;
  for (uint64_t i = 1; i <= 1000; ++i) told.GoOnTo(Push(i, 0));
  told.Drop(Pull(7));
  EXPECT_EQ(told.sessions(), 1u);
  told.End(kSession);
  told.GoOnTo(Push(1001, 0));
  told.Drop(Pull(8));
  EXPECT_EQ(told.sessions(), 0u);
  EXPECT_EQ(ReasonOf(told.WhyNever(Push(2000, 0))), Reason::kUnknownSession);
  EXPECT_EQ(ReasonOf(told.WhyNever(Pull(2000))), Reason::kUnknownSession);
}

}  // namespace
}  // namespace sluice

#include "server/rpc/access/observer_pulls.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(ObserverPullsTest, PermitsAFewOfEachSession) {
  ObserverPulls pulls;
  auto first = pulls.Begin(SessionId(1));
  const auto second = pulls.Begin(SessionId(1));
  const auto of_another = pulls.Begin(SessionId(2));
  EXPECT_THAT(first, IsOk());
  EXPECT_THAT(second, IsOk());
  EXPECT_THAT(of_another, IsOk());
  EXPECT_THAT(pulls.Begin(SessionId(1)), IsError(Reason::kTooManyPulls, HasSubstr("session 1")));
  *first = nullptr;
  EXPECT_THAT(pulls.Begin(SessionId(1)), IsOk());
}

}  // namespace
}  // namespace sluice

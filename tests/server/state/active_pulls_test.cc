#include "server/state/active_pulls.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SessionId kFirst(3);
constexpr SessionId kSecond(7);

TEST(ActivePullsTest, HasNoSessionAtFirst) { EXPECT_THAT(ActivePulls().Sessions(), IsEmpty()); }

TEST(ActivePullsTest, HasASessionUntilTheLastOfItsStreamsEnds) {
  ActivePulls pulls;
  auto call = std::make_unique<ActivePulls::Stream>(pulls, kSecond);
  auto lane = std::make_unique<ActivePulls::Stream>(pulls, kSecond);
  const ActivePulls::Stream other(pulls, kFirst);
  EXPECT_THAT(pulls.Sessions(), ElementsAre(kFirst, kSecond));
  call = nullptr;
  EXPECT_THAT(pulls.Sessions(), ElementsAre(kFirst, kSecond));
  lane = nullptr;
  EXPECT_THAT(pulls.Sessions(), ElementsAre(kFirst));
}

}  // namespace
}  // namespace sluice

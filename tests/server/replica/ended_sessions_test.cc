#include "server/replica/ended_sessions.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(EndedSessionsTest, ContainsWhatHasEndedAndNothingElse) {
  EndedSessions ended;
  for (const uint64_t id : {5, 2, 9, 6, 4}) ended.Add(SessionId(id));
  for (uint64_t id = 0; id <= 10; ++id) {
    const bool expected = id == 2 || (4 <= id && id <= 6) || id == 9;
    EXPECT_EQ(ended.Contains(SessionId(id)), expected) << id;
  }
}

TEST(EndedSessionsTest, KeepsOneRangeBetweenSessionsThatHaveNotEnded) {
  EndedSessions ended;
  for (uint64_t id = 2000; id >= 1; --id) {
    if (id != 7 && id != 500) ended.Add(SessionId(id));
  }
  EXPECT_EQ(ended.ranges(), 3u);
  ended.Add(SessionId(7));
  EXPECT_EQ(ended.ranges(), 2u);
  ended.Add(SessionId(500));
  ended.Add(SessionId(500));
  EXPECT_EQ(ended.ranges(), 1u);
  EXPECT_TRUE(ended.Contains(SessionId(2000)));
  EXPECT_FALSE(ended.Contains(SessionId(2001)));
  EXPECT_FALSE(ended.Contains(SessionId(0)));
}

}  // namespace
}  // namespace sluice

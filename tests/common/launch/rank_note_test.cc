#include "common/launch/rank_note.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RankNoteTest, ReachesRankZeroWhole) {
  const auto read = DecodeNote(EncodeNote({4, true, {"node2", "10.0.0.2", "\xff"}, "w\xff"}));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->node, 4);
  EXPECT_TRUE(read->only_serves);
  EXPECT_THAT(read->hosts, ElementsAre("node2", "10.0.0.2", "\xff"));
  EXPECT_EQ(read->name, "w\xff");
}

TEST(RankNoteTest, MayLackHosts) {
  const auto read = DecodeNote(EncodeNote({0, false, {}}));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->node, 0);
  EXPECT_FALSE(read->only_serves);
  EXPECT_THAT(read->hosts, IsEmpty());
}

TEST(RankNoteTest, RefusesForeignBytes) {
  for (const char* bytes : {"node2,10.0.0.2", "\xff\xff"}) {
    EXPECT_THAT(DecodeNote(bytes),
                HasCode(absl::StatusCode::kDataLoss, HasSubstr("bytes that are no note to rank 0")))
        << bytes;
  }
}

}  // namespace
}  // namespace sluice

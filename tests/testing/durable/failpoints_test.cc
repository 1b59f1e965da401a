#include "tests/testing/durable/failpoints.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJournal[] = "run/journal-1-0";

// What is on the disk when the point is reached; "-" if it never is.
class FailpointsTest : public ::testing::Test {
 protected:
  // Plays the life of a journal's segment: made, named, written twice and synced, and removed.
  std::vector<std::string> PlayUpTo(const std::string& name, uint64_t times) {
    std::vector<std::string> found = {"-"};
    FailpointFiles files(disk_, {name, times}, [&] { found = Look(); });
    auto segment = files.Create(kJournal);
    EXPECT_THAT(segment, IsOk());
    EXPECT_THAT(files.SyncDirectory("run"), IsOk());
    for (const char* record : {"abcd", "efgh"}) {
      EXPECT_THAT((*segment)->Append(record), IsOk());
      EXPECT_THAT((*segment)->Sync(), IsOk());
    }
    EXPECT_THAT(files.Remove(kJournal), IsOk());
    return found;
  }

  std::vector<std::string> Look() {
    const auto names = disk_.List("run");
    EXPECT_THAT(names, IsOk());
    if (!names.ok() || names->empty()) return {};
    return {disk_.BytesOf(kJournal)};
  }

  FaultyFiles disk_;
};

TEST_F(FailpointsTest, ActsAtTheTimeThatWasNamed) {
  EXPECT_THAT(PlayUpTo("journal.create.before", 1), ElementsAre());
  EXPECT_THAT(PlayUpTo("journal.create.after", 1), ElementsAre(""));
  EXPECT_THAT(PlayUpTo("journal.sync-directory.after", 1), ElementsAre(""));
  EXPECT_THAT(PlayUpTo("journal.write.before", 2), ElementsAre("abcd"));
  EXPECT_THAT(PlayUpTo("journal.write.torn", 2), ElementsAre("abcdef"));
  EXPECT_THAT(PlayUpTo("journal.write.after", 2), ElementsAre("abcdefgh"));
  EXPECT_THAT(PlayUpTo("journal.sync.after", 1), ElementsAre("abcd"));
  EXPECT_THAT(PlayUpTo("journal.remove.before", 1), ElementsAre("abcdefgh"));
  EXPECT_THAT(PlayUpTo("journal.remove.after", 1), ElementsAre());
}

TEST_F(FailpointsTest, APointThatIsNotReachedDoesNotAct) {
  EXPECT_THAT(PlayUpTo("journal.sync.after", 3), ElementsAre("-"));
  EXPECT_THAT(PlayUpTo("checkpoint.sync.after", 1), ElementsAre("-"));
}

TEST_F(FailpointsTest, ARenameIsOfTheNameThatTheFileGets) {
  int acted = 0;
  FailpointFiles files(disk_, {"checkpoint.rename.after", 1}, [&] { ++acted; });
  ASSERT_THAT(files.Create("run/draft"), IsOk());
  ASSERT_THAT(files.Rename("run/draft", "run/checkpoint-1-0.safetensors"), IsOk());
  EXPECT_EQ(acted, 1);
}

TEST(FailpointTest, IsReadFromItsNameAndHowOftenItIsReached) {
  const auto point = Failpoint::Parse("journal.sync.before:3");
  ASSERT_THAT(point, IsOk());
  EXPECT_EQ(point->name, "journal.sync.before");
  EXPECT_EQ(point->times, 3u);
  for (const char* text : {"", "journal.sync.before", "journal.sync.before:0", "a:b"}) {
    EXPECT_THAT(Failpoint::Parse(text),
                HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("is no failpoint")))
        << text;
  }
}

}  // namespace
}  // namespace sluice

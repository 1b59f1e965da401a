#include "common/checkpoint/reading/checkpoint_place.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Directories "a" and "b" of two servers, of which the first has two checkpoints.
class CheckpointPlaceTest : public ::testing::Test {
 protected:
  CheckpointPlaceTest() {
    std::filesystem::remove_all(root_);
    for (const char* directory : {"a", "b"}) {
      std::filesystem::create_directories(PathOf(directory));
    }
    for (const char* file : {kOld, kNew, "b/stripe-000001-000000000009-1-of-2.safetensors"}) {
      std::ofstream(PathOf(file)) << "content";
    }
  }

  std::string PathOf(const std::string& name) const { return absl::StrCat(root_, "/", name); }

  absl::StatusOr<std::vector<CheckpointPlace>> Find(const std::string& name) const {
    return FindCheckpoints(RealFileSystem(), name);
  }

  static constexpr char kOld[] = "a/checkpoint-000001-000000000009.safetensors";
  static constexpr char kNew[] = "a/checkpoint-000002-000000000003.safetensors";

  const std::string root_ = absl::StrCat(::testing::TempDir(), "checkpoint_place");
  const std::string both_ = absl::StrCat(PathOf("a"), ",", PathOf("b"));
};

TEST_F(CheckpointPlaceTest, FindsAllOfADirectoryTheNewestFirst) {
  const auto found = Find(PathOf("a"));
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].file, PathOf(kNew));
  EXPECT_EQ((*found)[1].file, PathOf(kOld));
  EXPECT_THAT((*found)[1].directories, ElementsAre(PathOf("a")));
}

TEST_F(CheckpointPlaceTest, LooksInTheDirectoriesThatStandAfterCommas) {
  const auto found = Find(both_);
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->size(), 2U);
  for (const CheckpointPlace& place : *found) {
    EXPECT_THAT(place.directories, ElementsAre(PathOf("a"), PathOf("b")));
  }
  const auto newest = FindCheckpoint(RealFileSystem(), both_);
  ASSERT_THAT(newest, IsOk());
  EXPECT_EQ(newest->file, PathOf(kNew));
}

TEST_F(CheckpointPlaceTest, TakesAFileThatIsNamed) {
  const auto found = Find(absl::StrCat(PathOf(kOld), ",", PathOf("b")));
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().file, PathOf(kOld));
  EXPECT_THAT(found->front().directories, ElementsAre(PathOf("a"), PathOf("b")));
}

TEST_F(CheckpointPlaceTest, ANameThatExistsMayHaveAComma) {
  std::filesystem::rename(PathOf("a"), PathOf("a,b"));
  EXPECT_THAT(WordsOfName(RealFileSystem(), PathOf("a,b")), ElementsAre(PathOf("a,b")));
  EXPECT_THAT(WordsOfName(RealFileSystem(), "x,y"), ElementsAre("x", "y"));
  EXPECT_THAT(WordsOfName(RealFileSystem(), ""), IsEmpty());
  EXPECT_THAT(Find(PathOf("a,b")), IsOk());
}

TEST_F(CheckpointPlaceTest, SaysWhichDirectoryToNameFirst) {
  EXPECT_THAT(Find(PathOf("b")),
              HasCode(absl::StatusCode::kNotFound,
                      HasSubstr(PathOf("b") + " has no checkpoint (checkpoint-*.safetensors), but "
                                              "one server's parts of them; name the directory of "
                                              "the first server, then with a comma between this "
                                              "one")));
}

TEST_F(CheckpointPlaceTest, NamesADirectoryThatIsNotThere) {
  EXPECT_THAT(Find(both_ + ",/no/such"),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
}

TEST_F(CheckpointPlaceTest, RefusesAnEmptyName) {
  EXPECT_THAT(Find(","), HasCode(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("expected its file or its directory")));
}

}  // namespace
}  // namespace sluice

#include "common/storage/file_system.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string ContentOf(const std::string& path) {
  const auto file = RealFileSystem().Open(path);
  EXPECT_THAT(file, IsOk());
  if (!file.ok()) return "";
  std::string content((*file)->size(), '\0');
  EXPECT_THAT((*file)->Read(0, absl::MakeSpan(content)), IsOk());
  return content;
}

TEST(RealFileSystemTest, WhatFollowsACutIsAppendedToWhatIsLeft) {
  const std::string path = absl::StrCat(::testing::TempDir(), "cut");
  auto file = RealFileSystem().Create(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->Append("kept, lost"), IsOk());
  EXPECT_THAT((*file)->Truncate(4), IsOk());
  EXPECT_EQ(ContentOf(path), "kept");
  EXPECT_THAT((*file)->Append(" too"), IsOk());
  EXPECT_EQ(ContentOf(path), "kept too");
}

TEST(RealFileSystemTest, ReadsNothingBehindTheEnd) {
  const std::string path = absl::StrCat(::testing::TempDir(), "short");
  ASSERT_THAT((*RealFileSystem().Create(path))->Append("abc"), IsOk());
  const auto file = RealFileSystem().Open(path);
  ASSERT_THAT(file, IsOk());
  std::string two(2, '\0');
  EXPECT_THAT((*file)->Read(1, absl::MakeSpan(two)), IsOk());
  EXPECT_EQ(two, "bc");
  EXPECT_THAT((*file)->Read(2, absl::MakeSpan(two)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("expected 1 more")));
}

}  // namespace
}  // namespace sluice

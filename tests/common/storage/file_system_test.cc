#include "common/storage/file_system.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

TEST(RealFileSystemTest, WaitsForNobodyAtTheOtherEndOfAPipe) {
  const std::string pipe = absl::StrCat(::testing::TempDir(), "pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto refused =
      HasCode(absl::StatusCode::kUnavailable, HasSubstr(pipe + " is a named pipe, expected"));
  EXPECT_THAT(RealFileSystem().Open(pipe), refused);
  EXPECT_THAT(RealFileSystem().Create(pipe), refused);
}

// The limit of a file's size stands for a full disk.
TEST(RealFileSystemTest, AFileAtItsLimitIsAFullDisk) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little = {4096, before.rlim_max};
  const auto file = RealFileSystem().Create(absl::StrCat(::testing::TempDir(), "limited"));
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status written = (*file)->Append(std::string(4097, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(written, HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("File too large")));
}

}  // namespace
}  // namespace sluice

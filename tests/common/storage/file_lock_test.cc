#include "common/storage/file_lock.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const char* name) { return absl::StrCat(::testing::TempDir(), name); }

TEST(FileLockTest, IsHeldByOneAndTellsOthersByWhom) {
  const std::string path = PathOf("one");
  auto first = FileLock::Take(path, "the first");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(
      FileLock::Take(path, "the second"),
      HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr(path + " is held by the first")));
  *first = nullptr;
  EXPECT_THAT(FileLock::Take(path, "the second"), IsOk());
}

TEST(FileLockTest, TellsWhetherItIsHeld) {
  const std::string path = PathOf("asked");
  EXPECT_THAT(FileLock::IsHeld(path), IsOkAndHolds(false));
  auto lock = FileLock::Take(path, "somebody");
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(FileLock::IsHeld(path), IsOkAndHolds(true));
  *lock = nullptr;
  EXPECT_THAT(FileLock::IsHeld(path), IsOkAndHolds(false));
}

TEST(FileLockTest, CannotBeTakenOrAskedForWhereThereIsNoDirectory) {
  const std::string path = PathOf("nowhere/LOCK");
  EXPECT_THAT(FileLock::Take(path, "nobody"),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr(path)));
  EXPECT_THAT(FileLock::IsHeld(path), IsOkAndHolds(false));
}

}  // namespace
}  // namespace sluice

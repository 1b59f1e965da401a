#include "common/net/private_directory.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::MatchesRegex;

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode;
}

void WriteFile(const std::string& path) { std::ofstream(path) << "content"; }

// A runtime directory for the test, named by $XDG_RUNTIME_DIR.
class PrivateDirectoryTest : public ::testing::Test {
 protected:
  PrivateDirectoryTest() {
    fs::remove_all(runtime_);
    fs::create_directory(runtime_);
    SetRuntimeDirectory(runtime_);
  }
  ~PrivateDirectoryTest() override { fs::remove_all(runtime_); }

  static void SetRuntimeDirectory(const std::string& path) {
    setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
  }

  static std::unique_ptr<PrivateDirectory> Make() {
    auto directory = PrivateDirectory::Create();
    EXPECT_THAT(directory, IsOk());
    return directory.ok() ? *std::move(directory) : nullptr;
  }

  const std::string runtime_ = ::testing::TempDir() + "/runtime";
};

TEST_F(PrivateDirectoryTest, LiesInTheRuntimeDirectory) {
  EXPECT_THAT(Make()->path(), MatchesRegex(runtime_ + "/sluice-[A-Za-z0-9]+"));
}

TEST_F(PrivateDirectoryTest, LiesInTmpIfThereIsNoUsableRuntimeDirectory) {
  WriteFile(runtime_ + "/file");
  for (const std::string& unusable :
       {std::string(), std::string("relative"), runtime_ + "/missing", runtime_ + "/file"}) {
    SetRuntimeDirectory(unusable);
    EXPECT_THAT(Make()->path(), MatchesRegex("/tmp/sluice-[A-Za-z0-9]+"));
  }
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THAT(Make()->path(), MatchesRegex("/tmp/sluice-[A-Za-z0-9]+"));
}

TEST_F(PrivateDirectoryTest, IsOpenToItsOwnerAloneWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0077}) {
    const mode_t old = umask(mask);
    const auto directory = Make();
    umask(old);
    EXPECT_EQ(ModeOf(directory->path()), static_cast<mode_t>(S_IFDIR | 0700));
  }
}

TEST_F(PrivateDirectoryTest, IsAnotherEachTime) { EXPECT_NE(Make()->path(), Make()->path()); }

TEST_F(PrivateDirectoryTest, GoesWithAllItHolds) {
  auto directory = Make();
  const std::string path = directory->path();
  WriteFile(path + "/socket");
  fs::create_directory(path + "/deeper");
  WriteFile(path + "/deeper/file");
  directory.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(runtime_));
}

TEST_F(PrivateDirectoryTest, LeavesAloneWhatItsLinksPointTo) {
  WriteFile(runtime_ + "/precious");
  fs::create_directory(runtime_ + "/valued");
  WriteFile(runtime_ + "/valued/file");
  auto directory = Make();
  fs::create_symlink(runtime_ + "/precious", directory->path() + "/link");
  fs::create_directory_symlink(runtime_ + "/valued", directory->path() + "/links");
  directory.reset();
  EXPECT_TRUE(fs::exists(runtime_ + "/precious"));
  EXPECT_TRUE(fs::exists(runtime_ + "/valued/file"));
}

TEST_F(PrivateDirectoryTest, MayBeGoneBeforeItsOwner) {
  auto directory = Make();
  fs::remove_all(directory->path());
  directory.reset();
  EXPECT_TRUE(fs::is_empty(runtime_));
}

}  // namespace
}  // namespace sluice

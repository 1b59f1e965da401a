#include "server/program/memory_bytes.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// A tree of files in place of the machine's.
class MemoryBytesTest : public ::testing::Test {
 protected:
  MemoryBytesTest() { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = absl::StrCat(root_, file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  uint64_t Machine() const {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  }

  const std::string root_ = absl::StrCat(
      ::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(MemoryBytesTest, AreTheMachinesWithoutControlGroups) {
  EXPECT_EQ(MemoryBytes(root_), Machine());
}

TEST_F(MemoryBytesTest, FollowTheLimitOfTheControlGroup) {
  Write("/proc/self/cgroup", "0::/jobs/job7");
  Write("/sys/fs/cgroup/jobs/job7/memory.max", "1000000");
  EXPECT_EQ(MemoryBytes(root_), 1000000u);
}

TEST_F(MemoryBytesTest, FollowTheLowestLimitOfTheGroupsAbove) {
  Write("/proc/self/cgroup", "0::/jobs/job7");
  Write("/sys/fs/cgroup/jobs/job7/memory.max", "max");
  Write("/sys/fs/cgroup/jobs/memory.max", "2000000");
  Write("/sys/fs/cgroup/memory.max", "3000000");
  EXPECT_EQ(MemoryBytes(root_), 2000000u);
}

TEST_F(MemoryBytesTest, FollowTheContainersOwnTop) {
  Write("/proc/self/cgroup", "0::/");
  Write("/sys/fs/cgroup/memory.max", "3000000");
  EXPECT_EQ(MemoryBytes(root_), 3000000u);
}

TEST_F(MemoryBytesTest, FollowTheLimitOfTheFirstVersion) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/docker/ab\n4:hugetlb,memory:/docker/ab\n0::/docker/ab");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000");
  EXPECT_EQ(MemoryBytes(root_), 4000000u);
}

TEST_F(MemoryBytesTest, AreTheMachinesWhereNoGroupHasALimit) {
  Write("/proc/self/cgroup", "4:memory:/a\n0::/a\nnonsense");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712");
  Write("/sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(MemoryBytes(root_), Machine());
}

// 1000 pages are taken of the address space, and 100 of them are data.
TEST_F(MemoryBytesTest, AreWhatTheLimitsOfTheShellLeave) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Write("/proc/self/statm", "1000 7 7 7 0 100 0");
  Write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max data size             unlimited            unlimited            bytes\n"
        "Max address space         8000000000           unlimited            bytes");
  const uint64_t by_addresses = MemoryBytes(root_);
  EXPECT_LT(by_addresses, 8000000000 - 1000 * page);
  Write("/proc/self/limits", "Max data size             8000000000           unlimited    bytes");
  EXPECT_EQ(MemoryBytes(root_), by_addresses + 900 * page);
}

TEST_F(MemoryBytesTest, AreNoneWhereALimitOfTheShellLeavesNone) {
  Write("/proc/self/statm", "1000 7 7 7 0 100 0");
  Write("/proc/self/limits", "Max address space         5000000              5000000      bytes");
  EXPECT_EQ(MemoryBytes(root_), 0u);
}

}  // namespace
}  // namespace sluice

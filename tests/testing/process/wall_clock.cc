#include "tests/testing/process/wall_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace sluice {
namespace {

int64_t* MapNewFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  EXPECT_EQ(ftruncate(file, sizeof(int64_t)), 0) << path;
  void* const memory = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  EXPECT_NE(memory, MAP_FAILED) << path;
  return static_cast<int64_t*>(memory);
}

}  // namespace

WallClock::WallClock(const std::string& path) : path_(path), ahead_(MapNewFile(path)) {}

WallClock::~WallClock() { munmap(ahead_, sizeof(int64_t)); }

Process::Environment WallClock::environment() const {
  return {{"LD_PRELOAD", RunfilePath("tests/testing/process/moved_clock.so")},
          {"SLUICE_MOVED_CLOCK", path_},
          {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
}

void WallClock::Set(absl::Duration ahead) {
  __atomic_store_n(ahead_, absl::ToInt64Nanoseconds(ahead), __ATOMIC_SEQ_CST);
}

}  // namespace sluice

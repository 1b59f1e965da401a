#include "common/base/malloc_tuning.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr size_t kBuffer = 4 << 20;
constexpr size_t kBuffers = 8;
constexpr size_t kPages = kBuffers * kBuffer / 4096;

long PageFaults() {
  struct rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_minflt;
}

// Takes buffers, uses them, and frees them: what a few messages under way do. Through a pointer
// that the compiler cannot see through.
void UseBuffers() {
  void* (*volatile allocate)(size_t) = std::malloc;
  std::vector<void*> buffers;
  for (size_t i = 0; i < kBuffers; ++i) {
    buffers.push_back(allocate(kBuffer));
    std::memset(buffers.back(), 1, kBuffer);
  }
  for (void* const buffer : buffers) std::free(buffer);
}

class AllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  }
};

TEST_F(AllocatorTest, MemoryThatWasFreedIsNotFaultedInAgain) {
  KeepFreedMemory();
  UseBuffers();
  const long before = PageFaults();
  for (int i = 0; i < 10; ++i) UseBuffers();
  // By default it would be this many for each of them.
  EXPECT_LT(PageFaults() - before, static_cast<long>(kPages));
}

TEST_F(AllocatorTest, ThreadsShareOneHeap) {
  KeepFreedMemoryInOneHeap();
  UseBuffers();
  const long before = PageFaults();
  for (int i = 0; i < 10; ++i) std::thread(UseBuffers).join();
  EXPECT_LT(PageFaults() - before, static_cast<long>(kPages));
}

}  // namespace
}  // namespace sluice

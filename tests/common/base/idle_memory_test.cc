#include "common/base/idle_memory.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "common/base/malloc_tuning.h"
#include "common/base/process_memory.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint64_t kBlock = 1 << 20;
constexpr int kBlocks = 256;
constexpr absl::Duration kStep = IdleMemory::kLook;

uint64_t Resident() { return ReadProcessMemory().resident; }

std::vector<std::unique_ptr<char[]>> Blocks() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(new char[kBlock]);
    memset(blocks.back().get(), 1, kBlock);
  }
  return blocks;
}

class IdleMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer has a malloc of its own";
#endif
    KeepFreedMemoryInOneHeap();
  }

  // Lets time pass, and looks as often as it can. Returns whether memory was given back.
  bool Pass(absl::Duration time) {
    bool given = false;
    for (const absl::Time end = now_ + time; now_ < end; now_ += kStep) given |= memory_.Look(now_);
    return given;
  }

  IdleMemory memory_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(IdleMemoryTest, WhatWasFreeForAMinuteIsGivenBack) {
  Blocks();  // and freed at once
  const uint64_t before = Resident();
  EXPECT_FALSE(Pass(IdleMemory::kIdle));
  EXPECT_GT(Resident() + kBlock, before);
  EXPECT_TRUE(Pass(kStep));
  EXPECT_LT(Resident(), before - kBlocks * kBlock / 2);
}

TEST_F(IdleMemoryTest, WhatWasGivenBackIsNotGivenBackAgain) {
  Blocks();
  EXPECT_TRUE(Pass(IdleMemory::kIdle + kStep));
  EXPECT_FALSE(Pass(3 * IdleMemory::kIdle));
}

TEST_F(IdleMemoryTest, WhatIsNeededAgainIsKept) {
  Blocks();
  for (int minute = 0; minute < 3; ++minute) {
    EXPECT_FALSE(Pass(IdleMemory::kIdle / 2));
    const auto used = Blocks();
    EXPECT_FALSE(Pass(IdleMemory::kIdle / 2));
  }
}

}  // namespace
}  // namespace sluice

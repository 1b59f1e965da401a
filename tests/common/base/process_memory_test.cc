#include "common/base/process_memory.h"

#include <cstring>
#include <memory>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(ProcessMemoryTest, CountsPagesThatAreWrittenTo) {
  constexpr uint64_t kBytes = 256 << 20;  // far more than anything else of this test
  const ProcessMemory before = ReadProcessMemory();
  const std::unique_ptr<char[]> block(new char[kBytes]);
  memset(block.get(), 1, kBytes);
  const ProcessMemory after = ReadProcessMemory();
  EXPECT_GE(after.resident, before.resident + kBytes);
  EXPECT_LT(after.shared, before.shared + kBytes / 2);
}

}  // namespace
}  // namespace sluice

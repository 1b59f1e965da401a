#include "common/base/idle_memory.h"

#include <algorithm>
#include <cstdlib>  // defines __GLIBC__, where that is the C library

#include "common/base/process_memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sluice {
namespace {

// The bytes of the heap that are free and in memory, and those of stacks. malloc's own count of
// free bytes does not fall when they are given back.
uint64_t FreeBytes() {
#ifdef __GLIBC__
  const ProcessMemory memory = ReadProcessMemory();
  const uint64_t own = memory.resident - std::min(memory.resident, memory.shared);
  const auto heap = mallinfo2();
  const uint64_t used = heap.uordblks + heap.hblkhd;
  return own - std::min(own, used);
#else
  return 0;
#endif
}

void GiveBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

bool IdleMemory::Look(absl::Time now) {
  if (now < next_) return false;
  if (next_ == absl::InfinitePast()) since_ = now;
  next_ = now + kLook;
  least_ = std::min(least_, FreeBytes());
  if (now - since_ < kIdle) return false;
  const bool idle = least_ > kEnough;
  if (idle) GiveBack();
  since_ = now;
  least_ = std::numeric_limits<uint64_t>::max();
  return idle;
}

}  // namespace sluice

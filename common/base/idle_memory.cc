#include "common/base/idle_memory.h"

#include <algorithm>
#include <cstdlib>  // defines __GLIBC__, where that is the C library

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sluice {
namespace {

uint64_t FreeBytes() {
#ifdef __GLIBC__
  return mallinfo2().fordblks;
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

#include "common/base/malloc_tuning.h"

#include <cstdlib>  // defines __GLIBC__, where that is the C library

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sluice {

void KeepFreedMemory() {
#ifdef __GLIBC__
  // Setting either also stops glibc from adapting it. The first is the most it takes.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

void KeepFreedMemoryInOneHeap() {
  KeepFreedMemory();
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace sluice

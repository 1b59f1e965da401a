// Asks the processor to fetch memory before a loop reads it.
//
// A processor fetches ahead by itself when a loop reads memory in order, but only up to the end of
// a page, so the loop waits at each page. A loop over blocks can ask for its next block instead. A
// loop over memory that lies far apart can ask for all of it, and then waits once.

#ifndef SLUICE_COMMON_TENSOR_FETCH_AHEAD_H_
#define SLUICE_COMMON_TENSOR_FETCH_AHEAD_H_

#include <cstddef>

#include "common/tensor/vector_clones.h"

namespace sluice {

// Asks for all cache lines of these bytes, at any alignment.
SLUICE_LOOP_BODY void FetchAhead(const void* from, size_t bytes) {
  constexpr size_t kCacheLine = 64;
  const char* const begin = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(begin + i);
  if (bytes > 0) __builtin_prefetch(begin + bytes - 1);
}

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_FETCH_AHEAD_H_

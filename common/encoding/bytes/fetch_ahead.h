// Asks the processor to fetch memory before a loop reads it.
//
// A processor fetches ahead by itself when a loop reads memory in order, but only up to the end of
// a page, so the loop waits at each page. A loop over blocks can ask for its next block instead.

#ifndef SLUICE_COMMON_ENCODING_BYTES_FETCH_AHEAD_H_
#define SLUICE_COMMON_ENCODING_BYTES_FETCH_AHEAD_H_

#include <cstddef>

#include "common/tensor/vector_clones.h"

namespace sluice {

SLUICE_LOOP_BODY void FetchAhead(const void* from, size_t bytes) {
  constexpr size_t kCacheLine = 64;
  for (size_t i = 0; i < bytes; i += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i);
  }
}

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_BYTES_FETCH_AHEAD_H_

// Memory asked for before it is read.
//
// A processor notices that a loop reads on and on, but asks for the next lines only up to the end
// of a page; at each page the loop waits. A loop over blocks may ask for the next block itself.

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

#include "common/tensor/vector_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/tensor/vector_clones.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sluice {

SLUICE_VECTOR_CLONES SLUICE_LOOP_OF_COPIES void CopyTo(FloatPiece from, absl::Span<float> to) {
  const UnalignedFloat* __restrict in = from.data();
  float* __restrict out = to.data();
  for (size_t i = 0; i < to.size(); ++i) out[i] = in[i].value;
}

#ifdef __SSE2__
// All loads of a block come before its stores. A load waits for a store before it whose address has
// the same last 12 bits, and such a store takes long until its cache line is full. With one vector
// at a time, a copy to an address 4 to 28 bytes after `from` (whole pages do not count) took 12
// times as long.
void StreamTo(FloatPiece from, absl::Span<float> to) {
  constexpr size_t kVector = sizeof(__m128) / sizeof(float);
  constexpr size_t kVectors = 8;  // two cache lines; half of the registers
  constexpr size_t kBlock = kVectors * kVector;
  // Elements before the first aligned vector.
  const size_t past = reinterpret_cast<uintptr_t>(to.data()) / sizeof(float) % kVector;
  const size_t begin = std::min(to.size(), (kVector - past) % kVector);
  const size_t end = to.size() - (to.size() - begin) % kBlock;
  CopyTo(from.subspan(0, begin), to.subspan(0, begin));
  for (size_t i = begin; i < end; i += kBlock) {
    __m128 block[kVectors];
    for (size_t j = 0; j < kVectors; ++j) {
      std::memcpy(&block[j], &from[i + j * kVector], sizeof(__m128));
    }
    for (size_t j = 0; j < kVectors; ++j) _mm_stream_ps(&to[i + j * kVector], block[j]);
  }
  CopyTo(from.subspan(end), to.subspan(end));
}

void EndStreams() { _mm_sfence(); }
#else
void StreamTo(FloatPiece from, absl::Span<float> to) { CopyTo(from, to); }

void EndStreams() {}
#endif

}  // namespace sluice

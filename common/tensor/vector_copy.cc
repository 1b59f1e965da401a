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
void StreamTo(FloatPiece from, absl::Span<float> to) {
  constexpr size_t kVector = sizeof(__m128) / sizeof(float);
  // Elements before the first aligned vector.
  const size_t past = reinterpret_cast<uintptr_t>(to.data()) / sizeof(float) % kVector;
  const size_t begin = std::min(to.size(), (kVector - past) % kVector);
  const size_t end = to.size() - (to.size() - begin) % kVector;
  CopyTo(from.subspan(0, begin), to.subspan(0, begin));
  for (size_t i = begin; i < end; i += kVector) {
    __m128 vector;
    std::memcpy(&vector, &from[i], sizeof(vector));
    _mm_stream_ps(&to[i], vector);
  }
  CopyTo(from.subspan(end), to.subspan(end));
}

void EndStreams() { _mm_sfence(); }
#else
void StreamTo(FloatPiece from, absl::Span<float> to) { CopyTo(from, to); }

void EndStreams() {}
#endif

}  // namespace sluice

// Copies floats, through the caches or past them.

#ifndef SLUICE_COMMON_TENSOR_VECTOR_COPY_H_
#define SLUICE_COMMON_TENSOR_VECTOR_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// StreamTo() is faster for vectors of at least this many elements: 8 MiB.
inline constexpr uint64_t kStreamedElements = uint64_t{1} << 21;

// to[i] = from[i]. In this file, both spans have the same size and do not overlap.
void CopyTo(FloatPiece from, absl::Span<float> to);

// Does the same as CopyTo(), but writes past the caches if the processor can. Use it for vectors
// that are too large to stay in the caches. The thread that copied must call EndStreams() before
// other threads read `to`.
void StreamTo(FloatPiece from, absl::Span<float> to);
void EndStreams();

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_VECTOR_COPY_H_

// Copies of floats, through the caches and past them.

#ifndef SLUICE_COMMON_TENSOR_VECTOR_COPY_H_
#define SLUICE_COMMON_TENSOR_VECTOR_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/tensor/tensor_chunk.h"

namespace sluice {

// Elements of a vector from which on StreamTo() is worth it: 8 MiB.
inline constexpr uint64_t kStreamedElements = uint64_t{1} << 21;

// to[i] = from[i]. The spans have one size and do not overlap; so below.
void CopyTo(FloatPiece from, absl::Span<float> to);

// As CopyTo, but past the caches where the processor can: for what is too large to stay in them and
// would only drive others out. A line that is written so is not read from memory first. Other
// threads see it after EndStreams(), which the thread calls that has copied.
void StreamTo(FloatPiece from, absl::Span<float> to);
void EndStreams();

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_VECTOR_COPY_H_

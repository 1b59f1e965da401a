// Error feedback: what a lossy encoding loses of one vector is added to the next vector, so that it
// arrives later (Seide et al. 2014; Karimireddy et al. 2019).
//
// Workers use it for gradients and servers for parameters. The caller keeps the residual, one float
// per element, between calls.

#ifndef SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_
#define SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// Encodes `values` + `before` like EncodeValues(), where `before` is the residual of the last call.
// Writes the new residual to `after`, which may be the same memory as `before`. If a value is
// infinite or NaN, the residual is not finite either.
EncodedChunk EncodeWithFeedback(uint64_t offset, absl::Span<const float> values,
                                absl::Span<const float> before, const Encoding& encoding,
                                const ChunkContext& context, const TransformRegistry& transforms,
                                absl::Span<float> after);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_

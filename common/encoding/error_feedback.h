// What a lossy encoding loses of one vector is added to the next (Seide et al. 2014; Karimireddy et
// al. 2019), so that nothing is lost for good.

#ifndef SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_
#define SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/encoding/encoding.h"
#include "common/encoding/transform.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

// As EncodeValues(), of `values` + `before`; writes what is lost of that to `after`, which may be
// `before`. If a value is not finite, neither is what is lost.
EncodedChunk EncodeWithFeedback(uint64_t offset, absl::Span<const float> values,
                                absl::Span<const float> before, const Encoding& encoding,
                                const ChunkContext& context, const TransformRegistry& transforms,
                                absl::Span<float> after);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ERROR_FEEDBACK_H_

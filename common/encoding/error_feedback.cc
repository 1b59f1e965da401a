#include "common/encoding/error_feedback.h"

#include <glog/logging.h>

#include <vector>

#include "common/encoding/codec.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {

EncodedChunk EncodeWithFeedback(uint64_t offset, absl::Span<const float> values,
                                absl::Span<const float> before, const Encoding& encoding,
                                const ChunkContext& context, const TransformRegistry& transforms,
                                absl::Span<float> after) {
  std::vector<float> whole(values.begin(), values.end());
  AddTo(AsPiece(before), absl::MakeSpan(whole));
  EncodedChunk encoded = EncodeValues(offset, whole, encoding, context, transforms);
  const absl::Status decoded = DecodeValues(encoded, after, transforms);
  CHECK(decoded.ok()) << decoded;
  SubtractFrom(whole, after);
  return encoded;
}

}  // namespace sluice

#include "common/encoding/transform.h"

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {

bool Transform::EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                               const ChunkContext& context, ChunkEncoding* how,
                               std::string* bytes) const {
  if (FindNotFinite(AsPiece(values)).has_value()) return false;
  Encode(values, encoding, context, how, bytes);
  return true;
}

}  // namespace sluice

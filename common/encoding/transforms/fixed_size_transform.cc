#include "common/encoding/transforms/fixed_size_transform.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

void FixedSizeTransform::Encode(absl::Span<const float> values, const Encoding& encoding,
                                const ChunkContext& context, ChunkEncoding* how,
                                std::string* bytes) const {
  EncodeIfFinite(values, encoding, context, how, bytes);
}

bool FixedSizeTransform::EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                                        const ChunkContext& context, ChunkEncoding* /*how*/,
                                        std::string* bytes) const {
  bytes->resize(SizeOf(values.size()));
  return EncodeTo(values, encoding, context, &(*bytes)[0]);
}

absl::StatusOr<uint64_t> FixedSizeTransform::MostBytes(const ChunkEncoding& how) const {
  return SizeOf(how.count);
}

absl::Status FixedSizeTransform::Decode(absl::string_view bytes, const ChunkEncoding& how,
                                        absl::Span<float> values) const {
  const uint64_t expected = SizeOf(how.count);
  if (bytes.size() == expected) return DecodeFrom(bytes.data(), values);
  return MakeError(Reason::kBadChunk,
                   absl::StrCat("an encoded chunk of ", how.count, " elements has ", bytes.size(),
                                " bytes, expected ", expected));
}

}  // namespace sluice

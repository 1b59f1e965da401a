#include "common/encoding/codec.h"

#include <glog/logging.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/encoding/builtin_transforms.h"
#include "common/encoding/byte_stage.h"
#include "common/encoding/checksum.h"
#include "common/error.h"

namespace sluice {
namespace {

ByteStage StageOf(const ChunkEncoding& how, const Transform& transform) {
  return {how.byte_layout, how.compressor, transform.width()};
}

ChunkEncoding Describe(uint64_t count, const Encoding& encoding) {
  ChunkEncoding how;
  how.count = count;
  how.transform = encoding.transform;
  how.custom = encoding.custom;
  how.byte_layout = encoding.byte_layout;
  how.compressor = encoding.compressor;
  return how;
}

}  // namespace

EncodedChunk EncodeValues(uint64_t offset, absl::Span<const float> values, const Encoding& encoding,
                          const ChunkContext& context) {
  CHECK(!values.empty() && values.size() <= kMostEncoded);
  EncodedChunk chunk;
  chunk.offset = offset;
  std::string bytes;
  chunk.how = Describe(values.size(), encoding);
  const auto transform = FindTransform(encoding.transform, encoding.custom);
  CHECK(transform.ok()) << transform.status();
  if (!(*transform)->EncodeIfFinite(values, encoding, context, &chunk.how, &bytes)) {
    Encoding as_they_are = encoding;
    as_they_are.transform = ValueTransform::kFloat32;
    as_they_are.custom.clear();
    chunk.how = Describe(values.size(), as_they_are);
    bytes.clear();
    Float32Transform().Encode(values, as_they_are, context, &chunk.how, &bytes);
  }
  // It may have chosen another.
  const Transform& chosen = **FindTransform(chunk.how.transform, chunk.how.custom);
  const auto payload = std::make_shared<const std::string>(
      PackBytes(std::move(bytes), StageOf(chunk.how, chosen), encoding.level));
  chunk.payload = *payload;
  chunk.checksum = Checksum(*payload);
  chunk.owner = payload;
  return chunk;
}

absl::Status DecodeValues(const EncodedChunk& chunk, absl::Span<float> values) {
  const ChunkEncoding& how = chunk.how;
  CHECK(how.count == values.size());
  if (how.count == 0 || how.count > kMostEncoded) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("an encoded chunk at offset ", chunk.offset, " has ", how.count,
                                  " elements, expected 1 to ", kMostEncoded));
  }
  const uint64_t checksum = Checksum(chunk.payload);
  if (checksum != chunk.checksum) {
    return MakeError(Reason::kCorruptChunk,
                     absl::StrCat("the chunk at offset ", chunk.offset, " has the checksum ",
                                  absl::Hex(checksum, absl::kZeroPad16), ", expected ",
                                  absl::Hex(chunk.checksum, absl::kZeroPad16), ": send it again"));
  }
  const auto transform = FindTransform(how.transform, how.custom);
  if (!transform.ok()) return transform.status();
  const auto most = (*transform)->MostBytes(how);
  if (!most.ok()) return most.status();
  std::string unpacked;
  const auto bytes = UnpackBytes(chunk.payload, StageOf(how, **transform), *most, &unpacked);
  if (!bytes.ok()) return bytes.status();
  return (*transform)->Decode(*bytes, how, values);
}

}  // namespace sluice

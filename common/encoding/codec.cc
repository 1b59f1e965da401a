#include "common/encoding/codec.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/bytes/byte_stage.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

ByteStage StageOf(const ChunkEncoding& how, const Transform& transform) {
  return {how.byte_layout, how.compressor, transform.width()};
}

// A message can have any number in these fields.
absl::Status CheckSteps(const ChunkEncoding& how) {
  const auto layout = static_cast<int>(how.byte_layout);
  if (layout < 0 || layout > static_cast<int>(ByteLayout::kNonzeroPlanes)) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("byte layout ", layout,
                                  " is not known here; expected plain, planes or nonzero"));
  }
  const auto compressor = static_cast<int>(how.compressor);
  if (compressor < 0 || compressor > static_cast<int>(Compressor::kPdict)) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("compressor ", compressor,
                                  " is not known here; expected none, zstd or pdict"));
  }
  return absl::OkStatus();
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

// For values that are not finite, which the transform cannot encode.
Encoding AsTheyAre(Encoding encoding) {
  encoding.transform = ValueTransform::kFloat32;
  encoding.custom.clear();
  return encoding;
}

// Returns false if a value is not finite.
bool Transformed(absl::Span<const float> values, const Encoding& encoding,
                 const ChunkContext& context, const TransformRegistry& transforms,
                 ChunkEncoding* how, std::string* bytes) {
  const auto transform = transforms.Find(encoding.transform, encoding.custom);
  CHECK(transform.ok()) << transform.status();
  return (*transform)->EncodeIfFinite(values, encoding, context, how, bytes);
}

// Decodes one block at a time, since a block fits into the first-level cache.
absl::Status DecodePastCaches(absl::string_view bytes, ChunkEncoding how,
                              const Transform& transform, absl::Span<float> values) {
  constexpr size_t kBlock = 2048;
  float block[kBlock];
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    how.count = std::min(kBlock, values.size() - begin);
    const absl::Span<float> decoded(block, how.count);
    const absl::Status status = transform.Decode(
        bytes.substr(begin * transform.width(), how.count * transform.width()), how, decoded);
    if (!status.ok()) return status;
    StreamTo(AsPiece(decoded), values.subspan(begin, how.count));
  }
  EndStreams();
  return absl::OkStatus();
}

}  // namespace

EncodedChunk EncodeValues(uint64_t offset, absl::Span<const float> values, const Encoding& encoding,
                          const ChunkContext& context, const TransformRegistry& transforms) {
  CHECK(!values.empty() && values.size() <= kMostEncoded);
  EncodedChunk chunk;
  chunk.offset = offset;
  chunk.how = Describe(values.size(), encoding);
  const auto made = std::make_shared<std::string>();
  absl::string_view bytes = BytesOf(values);
  if (encoding.transform != ValueTransform::kFloat32) {
    if (Transformed(values, encoding, context, transforms, &chunk.how, made.get())) {
      bytes = *made;
    } else {
      chunk.how = Describe(values.size(), AsTheyAre(encoding));
    }
  }
  // The transform may have chosen another one for this chunk.
  const Transform& chosen = **transforms.Find(chunk.how.transform, chunk.how.custom);
  const ByteStage stage = StageOf(chunk.how, chosen);
  if (stage.plain() && bytes.data() == made->data()) {
    chunk.payload = bytes;
    chunk.owner = made;
  } else {
    Buffer packed = PackBytes(bytes, stage, encoding.level);
    chunk.payload = packed.view();
    chunk.owner = std::shared_ptr<const char[]>(std::move(packed.bytes));
  }
  chunk.checksum = Checksum(chunk.payload);
  return chunk;
}

absl::Status DecodeValues(const EncodedChunk& chunk, absl::Span<float> values,
                          const TransformRegistry& transforms, Writes writes) {
  const ChunkEncoding& how = chunk.how;
  CHECK(how.count == values.size());
  if (how.count == 0 || how.count > kMostEncoded) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("an encoded chunk at offset ", chunk.offset, " has ", how.count,
                                  " elements, expected 1 to ", kMostEncoded));
  }
  const absl::Status intact =
      CompareChecksums(chunk.offset, Checksum(chunk.payload), chunk.checksum);
  if (!intact.ok()) return intact;
  const absl::Status steps = CheckSteps(how);
  if (!steps.ok()) return steps;
  const auto transform = transforms.Find(how.transform, how.custom);
  if (!transform.ok()) return transform.status();
  const auto most = (*transform)->MostBytes(how);
  if (!most.ok()) return most.status();
  const ByteStage stage = StageOf(how, **transform);
  const bool as_they_are = how.transform == ValueTransform::kFloat32;
  Buffer buffer;
  if (!stage.plain() && !as_they_are) buffer = MakeBuffer(*most);
  char* const room = as_they_are ? reinterpret_cast<char*>(values.data()) : buffer.bytes.get();
  const auto bytes = UnpackBytes(chunk.payload, stage, *most, room);
  if (!bytes.ok()) return bytes.status();
  if (as_they_are && bytes->data() == room && bytes->size() == *most) return absl::OkStatus();
  // If the number of bytes is wrong, Decode() says so.
  if (writes == Writes::kPastCaches && (*transform)->by_value() && bytes->size() == *most) {
    return DecodePastCaches(*bytes, how, **transform, values);
  }
  return (*transform)->Decode(*bytes, how, values);
}

}  // namespace sluice

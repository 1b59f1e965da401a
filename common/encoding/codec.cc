#include "common/encoding/codec.h"

#include <glog/logging.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/encoding/byte_stage.h"
#include "common/encoding/checksum.h"
#include "common/error.h"
#include "common/tensor_chunk.h"
#include "common/vector_math.h"

namespace sluice {
namespace {

ByteStage StageOf(const ChunkEncoding& how, const Transform& transform) {
  return {how.byte_layout, how.compressor, transform.width()};
}

// From the wire the fields are any numbers.
absl::Status CheckSteps(const ChunkEncoding& how) {
  if (how.byte_layout != ByteLayout::kPlain && how.byte_layout != ByteLayout::kPlanes) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("byte layout ", static_cast<int>(how.byte_layout),
                                  " is not known here; expected plain or planes"));
  }
  if (how.compressor != Compressor::kNone && how.compressor != Compressor::kZstd) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("compressor ", static_cast<int>(how.compressor),
                                  " is not known here; expected none or zstd"));
  }
  return absl::OkStatus();
}

}  // namespace

EncodedChunk EncodeValues(uint64_t offset, absl::Span<const float> values, const Encoding& encoding,
                          const ChunkContext& context) {
  CHECK(!values.empty() && values.size() <= kMostEncoded);
  const bool finite = !FindNotFinite(AsPiece(values)).has_value();
  EncodedChunk chunk;
  chunk.offset = offset;
  chunk.how.count = values.size();
  chunk.how.transform = finite ? encoding.transform : ValueTransform::kFloat32;
  if (finite) chunk.how.custom = encoding.custom;
  chunk.how.byte_layout = encoding.byte_layout;
  chunk.how.compressor = encoding.compressor;
  const auto transform = FindTransform(chunk.how.transform, chunk.how.custom);
  CHECK(transform.ok()) << transform.status();
  std::string bytes;
  (*transform)->Encode(values, encoding, context, &chunk.how, &bytes);
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
  const absl::Status steps = CheckSteps(how);
  if (!steps.ok()) return steps;
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

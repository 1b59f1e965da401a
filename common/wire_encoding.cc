#include "common/wire_encoding.h"

#include "absl/strings/str_cat.h"
#include "common/encoding/codec.h"
#include "common/error.h"

namespace sluice {
namespace {

// The numbers of the wire are those of the values.
static_assert(static_cast<int>(ValueTransform::kCustom) == v1::CUSTOM_VALUES, "");
static_assert(static_cast<int>(ValueTransform::kLowRank) == v1::LOW_RANK, "");
static_assert(static_cast<int>(ByteLayout::kPlanes) == v1::BYTE_PLANES, "");
static_assert(static_cast<int>(Compressor::kZstd) == v1::ZSTD, "");

// The steps of either message.
template <typename Message, typename Value>
bool TakeSteps(const Message& message, Value* value) {
  if (!v1::ValueTransform_IsValid(message.transform()) ||
      !v1::ByteLayout_IsValid(message.byte_layout()) ||
      !v1::Compressor_IsValid(message.compressor())) {
    return false;
  }
  value->transform = static_cast<ValueTransform>(message.transform());
  value->custom = message.custom();
  value->byte_layout = static_cast<ByteLayout>(message.byte_layout());
  value->compressor = static_cast<Compressor>(message.compressor());
  return true;
}

template <typename Value, typename Message>
void PutSteps(const Value& value, Message* message) {
  message->set_transform(static_cast<v1::ValueTransform>(value.transform));
  message->set_custom(value.custom);
  message->set_byte_layout(static_cast<v1::ByteLayout>(value.byte_layout));
  message->set_compressor(static_cast<v1::Compressor>(value.compressor));
}

}  // namespace

v1::Encoding ToProto(const Encoding& encoding) {
  v1::Encoding message;
  PutSteps(encoding, &message);
  message.set_stochastic(encoding.stochastic);
  if (encoding.sparse()) message.set_share(encoding.share);
  message.set_half(encoding.half);
  if (encoding.transform == ValueTransform::kLowRank) message.set_rank(encoding.rank);
  if (encoding.compressor == Compressor::kZstd) message.set_level(encoding.level);
  return message;
}

absl::StatusOr<Encoding> FromProto(const v1::Encoding& message) {
  Encoding encoding;
  if (!TakeSteps(message, &encoding)) {
    return MakeError(Reason::kBadArgument,
                     "an encoding has a step that is unknown here; ask for one that is documented "
                     "for this server's version");
  }
  encoding.stochastic = message.stochastic();
  if (encoding.sparse()) encoding.share = message.share();
  encoding.half = message.half();
  if (encoding.transform == ValueTransform::kLowRank) encoding.rank = message.rank();
  if (encoding.compressor == Compressor::kZstd) encoding.level = message.level();
  // Its name says all of it, and is read with all checks.
  return ParseEncoding(EncodingName(encoding));
}

v1::ChunkEncoding ToProto(const ChunkEncoding& encoding) {
  v1::ChunkEncoding message;
  PutSteps(encoding, &message);
  message.set_count(encoding.count);
  message.set_kept(encoding.kept);
  message.set_half(encoding.half);
  message.set_seed(encoding.seed);
  message.set_columns(encoding.columns);
  message.set_rank(encoding.rank);
  return message;
}

absl::StatusOr<ChunkEncoding> FromProto(const v1::ChunkEncoding& message) {
  ChunkEncoding encoding;
  if (!TakeSteps(message, &encoding)) {
    return MakeError(Reason::kBadChunk, "a chunk's encoding has a step that is unknown here");
  }
  encoding.count = message.count();
  if (encoding.count == 0 || encoding.count > kMostEncoded) {
    return MakeError(Reason::kBadChunk, absl::StrCat("an encoded chunk has ", encoding.count,
                                                     " elements, expected 1 to ", kMostEncoded));
  }
  encoding.kept = message.kept();
  encoding.half = message.half();
  encoding.seed = message.seed();
  encoding.columns = message.columns();
  encoding.rank = message.rank();
  return encoding;
}

}  // namespace sluice

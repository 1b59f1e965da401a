#include "common/wire/encoding.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"

namespace sluice {
namespace {

// The enumerations have the same numbers as those of the protobuf messages.
static_assert(static_cast<int>(ValueTransform::kCustom) == v1::CUSTOM_VALUES, "");
static_assert(static_cast<int>(ValueTransform::kLowRank) == v1::LOW_RANK, "");
static_assert(static_cast<int>(ByteLayout::kNonzeroPlanes) == v1::NONZERO_BYTE_PLANES, "");
static_assert(static_cast<int>(Compressor::kPdict) == v1::PDICT, "");

// Both messages have these fields for the steps of an encoding.
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

constexpr size_t kLongestName = 64;

absl::StatusOr<ChosenEncoding> ReadChosen(const v1::ChosenEncoding& message) {
  if (message.encoding().size() > kLongestName) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("encodings: a name of ", message.encoding().size(),
                                  " bytes, expected at most ", kLongestName));
  }
  ChosenEncoding chosen;
  chosen.encoding = message.encoding();
  const std::pair<double, double*> numbers[] = {
      {message.link_bytes_per_second(), &chosen.link_bytes_per_second},
      {message.ratio(), &chosen.ratio},
      {message.encode_bytes_per_second(), &chosen.encode_bytes_per_second},
      {message.decode_bytes_per_second(), &chosen.decode_bytes_per_second}};
  for (const auto& [number, field] : numbers) {
    if (!(number >= 0 && std::isfinite(number))) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("encodings: ", number, ", expected a number from 0 on"));
    }
    *field = number;
  }
  return chosen;
}

}  // namespace

v1::ChosenEncoding ToProto(const ChosenEncoding& chosen) {
  v1::ChosenEncoding message;
  message.set_encoding(chosen.encoding);
  message.set_link_bytes_per_second(chosen.link_bytes_per_second);
  message.set_ratio(chosen.ratio);
  message.set_encode_bytes_per_second(chosen.encode_bytes_per_second);
  message.set_decode_bytes_per_second(chosen.decode_bytes_per_second);
  return message;
}

v1::EncodingReport ToProto(const EncodingReport& report) {
  v1::EncodingReport message;
  if (!report.push.encoding.empty()) *message.mutable_push() = ToProto(report.push);
  if (!report.pull.encoding.empty()) *message.mutable_pull() = ToProto(report.pull);
  return message;
}

absl::StatusOr<EncodingReport> FromProto(const v1::EncodingReport& message) {
  auto push = ReadChosen(message.push());
  if (!push.ok()) return push.status();
  auto pull = ReadChosen(message.pull());
  if (!pull.ok()) return pull.status();
  return EncodingReport{*std::move(push), *std::move(pull)};
}

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

absl::StatusOr<Encoding> FromProto(const v1::Encoding& message,
                                   const TransformRegistry& transforms) {
  Encoding encoding;
  if (!TakeSteps(message, &encoding)) {
    return MakeError(Reason::kBadArgument,
                     "an encoding has a step that is unknown here; ask for one that is documented "
                     "for this server's version");
  }
  // First, since ParseEncoding() would read a custom name "int8" or "x/zstd" as something else. A
  // program may have made a registry that lacks some of Sluice's own transforms, too.
  const auto known = transforms.Find(encoding.transform, encoding.custom);
  if (!known.ok()) return known.status();
  encoding.stochastic = message.stochastic();
  if (encoding.sparse()) encoding.share = message.share();
  encoding.half = message.half();
  if (encoding.transform == ValueTransform::kLowRank) encoding.rank = message.rank();
  if (encoding.compressor == Compressor::kZstd) encoding.level = message.level();
  // The name has every field, and ParseEncoding() checks them all.
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

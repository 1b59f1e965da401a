#include "common/encoding/byte_stage.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/zstd_codec.h"

namespace sluice {
namespace {

// Before each part: its length in the payload, little-endian, and in the highest bit whether it is
// stored as it was.
constexpr size_t kLengthBytes = 4;
constexpr uint32_t kStored = uint32_t{1} << 31;

// Planes by values of 2 or 4 bytes: a loop that the compiler knows the width of.
template <size_t kWidth>
void ToPlanes(const char* __restrict values, size_t count, char* __restrict planes) {
  for (size_t plane = 0; plane < kWidth; ++plane) {
    for (size_t i = 0; i < count; ++i) planes[plane * count + i] = values[i * kWidth + plane];
  }
}

template <size_t kWidth>
void FromPlanes(const char* __restrict planes, size_t count, char* __restrict values) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t plane = 0; plane < kWidth; ++plane) {
      values[i * kWidth + plane] = planes[plane * count + i];
    }
  }
}

std::string Split(const std::string& bytes, size_t width) {
  std::string planes(bytes.size(), '\0');
  const size_t count = bytes.size() / width;
  width == 2 ? ToPlanes<2>(bytes.data(), count, &planes[0])
             : ToPlanes<4>(bytes.data(), count, &planes[0]);
  return planes;
}

void Join(absl::string_view planes, size_t width, std::string* bytes) {
  bytes->resize(planes.size());
  const size_t count = planes.size() / width;
  width == 2 ? FromPlanes<2>(planes.data(), count, &(*bytes)[0])
             : FromPlanes<4>(planes.data(), count, &(*bytes)[0]);
}

void AppendLength(uint32_t length, std::string* to) {
  for (size_t i = 0; i < kLengthBytes; ++i) to->push_back(static_cast<char>(length >> (8 * i)));
}

uint32_t LengthAt(absl::string_view bytes) {
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length;
}

void AppendPart(absl::string_view part, int level, std::string* payload) {
  const size_t before = payload->size();
  AppendLength(0, payload);
  // What saves less than a twentieth is not worth the time it takes to decompress.
  const bool smaller = ZstdCompress(part, level, part.size() - part.size() / 20, payload);
  uint32_t length = static_cast<uint32_t>(payload->size() - before - kLengthBytes);
  if (!smaller) {
    payload->append(part.data(), part.size());
    length = static_cast<uint32_t>(part.size()) | kStored;
  }
  std::string head;
  AppendLength(length, &head);
  payload->replace(before, kLengthBytes, head);
}

absl::Status Broken(absl::string_view what) {
  return MakeError(Reason::kBadChunk, absl::StrCat("a compressed chunk ", what));
}

// Takes the next part off the front of `payload` and appends what it stands for to `bytes`: at most
// `most` of them, or, if `exact`, so many.
absl::Status TakePart(uint64_t most, bool exact, absl::string_view* payload, std::string* bytes) {
  if (payload->size() < kLengthBytes) return Broken("ends within the length of a part");
  const uint32_t head = LengthAt(*payload);
  payload->remove_prefix(kLengthBytes);
  const uint32_t length = head & ~kStored;
  if (length > payload->size()) {
    return Broken(
        absl::StrCat("has a part of ", length, " bytes, of which ", payload->size(), " are there"));
  }
  const absl::string_view part = payload->substr(0, length);
  payload->remove_prefix(length);
  const absl::optional<uint64_t> size =
      (head & kStored) != 0 ? absl::make_optional<uint64_t>(length) : ZstdSize(part);
  if (!size.has_value()) return Broken("has a part that is no zstd frame with its size in it");
  if (*size > most || (exact && *size != most)) {
    return Broken(absl::StrCat("has a part that stands for ", *size, " bytes, expected ",
                               exact ? "" : "at most ", most));
  }
  if ((head & kStored) != 0) {
    bytes->append(part.data(), part.size());
    return absl::OkStatus();
  }
  // No sender compresses to more; time to decompress grows with the part.
  if (length > *size) {
    return Broken(absl::StrCat("has a part of ", length, " bytes that stands for ", *size));
  }
  const size_t before = bytes->size();
  bytes->resize(before + *size);
  if (ZstdDecompress(part, absl::MakeSpan(&(*bytes)[before], *size))) return absl::OkStatus();
  return Broken("has a part that zstd cannot decompress");
}

}  // namespace

std::string PackBytes(std::string bytes, const ByteStage& stage, int level) {
  const bool planes = stage.byte_layout == ByteLayout::kPlanes && stage.width > 1;
  if (planes) bytes = Split(bytes, stage.width);
  if (stage.compressor == Compressor::kNone) return bytes;
  std::string payload;
  payload.reserve(bytes.size() + stage.width * kLengthBytes);
  const size_t parts = planes ? stage.width : 1;
  const size_t size = bytes.size() / parts;
  for (size_t i = 0; i < parts; ++i) {
    AppendPart(absl::string_view(bytes).substr(i * size, size), level, &payload);
  }
  return payload;
}

absl::StatusOr<absl::string_view> UnpackBytes(absl::string_view payload, const ByteStage& stage,
                                              uint64_t most, std::string* unpacked) {
  const bool planes = stage.byte_layout == ByteLayout::kPlanes && stage.width > 1;
  std::string bytes;
  absl::string_view view = payload;
  if (stage.compressor == Compressor::kZstd) {
    const size_t parts = planes ? stage.width : 1;
    absl::string_view rest = payload;
    for (size_t i = 0; i < parts; ++i) {
      const absl::Status taken = TakePart(most / parts, planes, &rest, &bytes);
      if (!taken.ok()) return taken;
    }
    if (!rest.empty()) return Broken(absl::StrCat("has ", rest.size(), " bytes after its parts"));
    view = bytes;
  } else if (payload.size() > most || (planes && payload.size() != most)) {
    return MakeError(Reason::kBadChunk, absl::StrCat("an encoded chunk has ", payload.size(),
                                                     " bytes, expected ", most));
  }
  if (planes) {
    Join(view, stage.width, unpacked);
    return absl::string_view(*unpacked);
  }
  if (stage.compressor == Compressor::kNone) return payload;
  *unpacked = std::move(bytes);
  return absl::string_view(*unpacked);
}

}  // namespace sluice

#include "tests/fuzz/oracles/plain_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace sluice {
namespace {

using Values = std::vector<float>;
using MaybeValues = absl::optional<Values>;

uint32_t LittleEndian(absl::string_view bytes, size_t width) {
  uint32_t number = 0;
  for (size_t i = 0; i < width; ++i) {
    number |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return number;
}

float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float Float16(uint32_t half) {
  const uint32_t sign = half >> 15;
  const int e = static_cast<int>(half >> 10 & 31);
  const uint32_t f = half & 1023;
  if (e == 31) return FloatOfBits(sign << 31 | 0x7f800000 | f << 13);
  const double magnitude = e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25);
  return static_cast<float>(sign == 1 ? -magnitude : magnitude);
}

// Value `index` of those that lie one after the other, of 4 or 2 bytes each.
float FloatAt(absl::string_view bytes, uint64_t index, ValueTransform transform) {
  if (transform == ValueTransform::kFloat32) {
    return FloatOfBits(LittleEndian(bytes.substr(4 * index), 4));
  }
  const uint32_t half = LittleEndian(bytes.substr(2 * index), 2);
  return transform == ValueTransform::kFloat16 ? Float16(half) : FloatOfBits(half << 16);
}

size_t WidthOf(ValueTransform transform) {
  switch (transform) {
    case ValueTransform::kFloat32:
      return 4;
    case ValueTransform::kFloat16:
    case ValueTransform::kBfloat16:
      return 2;
    default:
      return 1;
  }
}

using MaybeBytes = absl::optional<std::string>;

// What the first `size` bytes are; they are taken off the front.
absl::string_view Take(absl::string_view* bytes, size_t size) {
  const absl::string_view taken = bytes->substr(0, size);
  bytes->remove_prefix(taken.size());
  return taken;
}

MaybeBytes FromPdict(absl::string_view frame) {
  if (frame.size() < 19) return absl::nullopt;
  const uint64_t size = LittleEndian(frame, 4);
  const absl::string_view dictionary = frame.substr(4, 15);
  frame.remove_prefix(19);
  if (frame.size() < (size + 1) / 2) return absl::nullopt;
  const absl::string_view codes = Take(&frame, (size + 1) / 2);
  std::string bytes;
  for (uint64_t i = 0; i < size; ++i) {
    const int code = static_cast<uint8_t>(codes[i / 2]) >> (i % 2 * 4) & 15;
    if (code == 15 && frame.empty()) return absl::nullopt;
    bytes += code < 15 ? dictionary[static_cast<size_t>(code)] : Take(&frame, 1)[0];
  }
  if (!frame.empty()) return absl::nullopt;
  return bytes;
}

// Takes a part off the front.
MaybeBytes TakePart(absl::string_view* payload) {
  if (payload->size() < 4) return absl::nullopt;
  const uint32_t head = LittleEndian(Take(payload, 4), 4);
  const uint32_t length = head & 0x7fffffff;
  if (length > payload->size()) return absl::nullopt;
  const absl::string_view part = Take(payload, length);
  if (head >> 31 != 0) return std::string(part);
  MaybeBytes bytes = FromPdict(part);
  if (bytes.has_value() && length > bytes->size()) return absl::nullopt;
  return bytes;
}

// Takes so many bytes off the front, or a part of so many.
MaybeBytes TakeExactly(const ChunkEncoding& how, size_t size, absl::string_view* payload) {
  if (how.compressor == Compressor::kPdict) {
    const MaybeBytes part = TakePart(payload);
    if (!part.has_value() || part->size() != size) return absl::nullopt;
    return part;
  }
  if (payload->size() < size) return absl::nullopt;
  return std::string(Take(payload, size));
}

// For each value whether it is there.
absl::optional<std::vector<bool>> TakePresence(const ChunkEncoding& how,
                                               absl::string_view* payload) {
  const uint64_t map_bytes = (how.count + 7) / 8;
  MaybeBytes map;
  if (how.compressor == Compressor::kPdict) {
    map = TakePart(payload);
  } else if (!payload->empty()) {
    const uint64_t size = (*payload)[0] == 0 ? 1 : 1 + map_bytes;
    map = std::string(Take(payload, size));
  }
  if (!map.has_value() || map->empty()) return absl::nullopt;
  const bool all = (*map)[0] == 0 && map->size() == 1;
  const bool some = (*map)[0] == 1 && map->size() == 1 + map_bytes;
  if (!all && !some) return absl::nullopt;
  std::vector<bool> there;
  for (uint64_t i = 0; i < how.count; ++i) {
    there.push_back(all || ((*map)[1 + i / 8] >> (i % 8) & 1) != 0);
  }
  return there;
}

// What the transform made, of planes.
MaybeBytes BytesOfPlanes(const ChunkEncoding& how, size_t width, absl::string_view payload) {
  std::vector<bool> there(how.count, true);
  if (how.byte_layout == ByteLayout::kNonzeroPlanes) {
    const auto presence = TakePresence(how, &payload);
    if (!presence.has_value()) return absl::nullopt;
    there = *presence;
  }
  const auto count = static_cast<size_t>(std::count(there.begin(), there.end(), true));
  std::vector<std::string> planes;
  for (size_t i = 0; i < width; ++i) {
    const MaybeBytes plane = TakeExactly(how, count, &payload);
    if (!plane.has_value()) return absl::nullopt;
    planes.push_back(*plane);
  }
  if (!payload.empty()) return absl::nullopt;
  std::string bytes;
  size_t next = 0;
  for (const bool is_there : there) {
    for (const std::string& plane : planes) bytes += is_there ? plane[next] : '\0';
    if (is_there) ++next;
  }
  return bytes;
}

// What the transform made.
MaybeBytes TransformedBytes(const ChunkEncoding& how, absl::string_view payload) {
  const size_t width = WidthOf(how.transform);
  if (how.byte_layout != ByteLayout::kPlain && width > 1) {
    return BytesOfPlanes(how, width, payload);
  }
  if (how.compressor == Compressor::kNone) return std::string(payload);
  MaybeBytes part = TakePart(&payload);
  if (!payload.empty()) return absl::nullopt;
  return part;
}

MaybeValues Floats(absl::string_view bytes, uint64_t count, ValueTransform transform) {
  if (bytes.size() != count * WidthOf(transform)) return absl::nullopt;
  Values values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(FloatAt(bytes, i, transform));
  return values;
}

MaybeValues Int8(absl::string_view bytes, uint64_t count) {
  const uint64_t blocks = (count + 255) / 256;
  if (bytes.size() != 4 * blocks + count) return absl::nullopt;
  Values values;
  for (uint64_t i = 0; i < count; ++i) {
    const float scale = FloatAt(bytes, i / 256, ValueTransform::kFloat32);
    if (!std::isfinite(scale)) return absl::nullopt;
    const auto byte = static_cast<int8_t>(bytes[4 * blocks + i]);
    values.push_back(scale * static_cast<float>(byte));
  }
  return values;
}

MaybeValues Sign(absl::string_view bytes, uint64_t count) {
  const uint64_t blocks = (count + 1023) / 1024;
  if (bytes.size() != 4 * blocks + (count + 7) / 8) return absl::nullopt;
  Values values;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t scale = LittleEndian(bytes.substr(i / 1024 * 4), 4);
    if (!std::isfinite(FloatOfBits(scale))) return absl::nullopt;
    const bool negative = (bytes[4 * blocks + i / 8] >> (i % 8) & 1) != 0;
    values.push_back(FloatOfBits(negative ? scale ^ 0x80000000 : scale));
  }
  return values;
}

// The values of top-k and random-k, which are at the front.
MaybeValues Kept(const ChunkEncoding& how, absl::string_view bytes, size_t* end) {
  if (how.kept == 0 || how.kept > how.count) return absl::nullopt;
  const auto width = how.half ? ValueTransform::kFloat16 : ValueTransform::kFloat32;
  *end = how.kept * WidthOf(width);
  if (bytes.size() < *end) return absl::nullopt;
  return Floats(bytes.substr(0, *end), how.kept, width);
}

MaybeValues TopK(const ChunkEncoding& how, absl::string_view bytes) {
  size_t at = 0;
  const MaybeValues kept = Kept(how, bytes, &at);
  if (!kept.has_value()) return absl::nullopt;
  Values values(how.count, 0);
  uint64_t next = 0;
  for (const float value : *kept) {
    uint64_t gap = 0;
    for (int length = 0;; ++length) {
      if (length == 3 || at == bytes.size()) return absl::nullopt;
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      gap += static_cast<uint64_t>(byte % 128) << (7 * length);
      if (byte < 128) break;
    }
    next += gap;
    if (next >= how.count) return absl::nullopt;
    values[next++] = value;
  }
  if (at != bytes.size()) return absl::nullopt;
  return values;
}

MaybeValues RandomK(const ChunkEncoding& how, absl::string_view bytes) {
  size_t end = 0;
  const MaybeValues kept = Kept(how, bytes, &end);
  if (!kept.has_value() || end != bytes.size()) return absl::nullopt;
  Values values(how.count, 0);
  for (uint64_t i = 0; i < how.kept; ++i) {
    const uint64_t from = i * how.count / how.kept;
    const uint64_t to = (i + 1) * how.count / how.kept;
    uint64_t z = how.seed + (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z = z ^ (z >> 31);
    values[from + z % (to - from)] = (*kept)[i];
  }
  return values;
}

MaybeValues LowRank(const ChunkEncoding& how, absl::string_view bytes) {
  if (how.columns == 0 || how.count % how.columns != 0) return absl::nullopt;
  const uint64_t rows = how.count / how.columns;
  const uint64_t narrow = (rows + how.columns) * how.rank;
  if (how.rank == 0 || how.rank > 64 || narrow > how.count) return absl::nullopt;
  const MaybeValues pq = Floats(bytes, narrow, ValueTransform::kFloat32);
  if (!pq.has_value()) return absl::nullopt;
  Values values;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < how.columns; ++column) {
      float sum = 0;
      for (uint64_t k = 0; k < how.rank; ++k) {
        sum += (*pq)[row * how.rank + k] * (*pq)[(rows + column) * how.rank + k];
      }
      values.push_back(sum);
    }
  }
  return values;
}

}  // namespace

MaybeValues DecodePlainly(const ChunkEncoding& how, absl::string_view payload) {
  const MaybeBytes transformed = TransformedBytes(how, payload);
  if (!transformed.has_value()) return absl::nullopt;
  const absl::string_view bytes = *transformed;
  switch (how.transform) {
    case ValueTransform::kInt8:
      return Int8(bytes, how.count);
    case ValueTransform::kSign:
      return Sign(bytes, how.count);
    case ValueTransform::kTopK:
      return TopK(how, bytes);
    case ValueTransform::kRandomK:
      return RandomK(how, bytes);
    case ValueTransform::kLowRank:
      return LowRank(how, bytes);
    case ValueTransform::kCustom:
      return absl::nullopt;
    default:
      return Floats(bytes, how.count, how.transform);
  }
}

}  // namespace sluice

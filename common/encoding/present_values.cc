#include "common/encoding/present_values.h"

#include <algorithm>
#include <cstring>

#include "common/vector_clones.h"

namespace sluice {
namespace {

constexpr size_t kBits = 8;

template <typename Value>
Value Load(const char* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// One value in so many tells how many are zero, of a vector that is large enough.
constexpr size_t kLooks = 1024;

template <typename Value>
bool ManyZerosIn(absl::string_view values) {
  const size_t count = values.size() / sizeof(Value);
  const size_t stride = std::max<size_t>(1, count / kLooks);
  size_t looks = 0;
  size_t zeros = 0;
  for (size_t i = 0; i < count; i += stride, ++looks) {
    zeros += Load<Value>(values.data() + i * sizeof(Value)) == 0 ? 1 : 0;
  }
  return zeros > 0 && zeros >= looks / 16;
}

// Without a branch for each value, which would be a guess: every value is written, and the next one
// over it if it was zero.
template <typename Value>
uint8_t TakeUpTo8(const char* values, size_t count, char*& present) {
  uint32_t map = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto value = Load<Value>(values + i * sizeof(Value));
    const uint32_t there = value != 0 ? 1 : 0;
    std::memcpy(present, &value, sizeof(value));
    present += there * sizeof(value);
    map |= there << i;
  }
  return static_cast<uint8_t>(map);
}

template <typename Value>
size_t TakePresentOf(absl::string_view values, char* map, char* present) {
  const size_t count = values.size() / sizeof(Value);
  char* next = present;
  for (size_t i = 0; i < count; i += kBits) {
    const char* const from = values.data() + i * sizeof(Value);
    const uint8_t there = i + kBits <= count ? TakeUpTo8<Value>(from, kBits, next)
                                             : TakeUpTo8<Value>(from, count - i, next);
    *map++ = static_cast<char>(there);
  }
  return static_cast<size_t>(next - present) / sizeof(Value);
}

// Processors that have vectors count bits by an instruction, too.
SLUICE_VECTOR_CLONES
size_t CountBits(const char* bytes, size_t size) {
  size_t count = 0;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    count += static_cast<size_t>(__builtin_popcountll(Load<uint64_t>(bytes + i)));
  }
  for (; i < size; ++i) count += static_cast<size_t>(__builtin_popcount(Load<uint8_t>(bytes + i)));
  return count;
}

bool IsThere(absl::string_view map, size_t value) {
  return (static_cast<uint8_t>(map[value / kBits]) >> (value % kBits) & 1) != 0;
}

// Does not read behind the last value that is there.
template <typename Value>
void PlaceOne(bool there, const char*& present, char* to) {
  const Value value = there ? Load<Value>(present) : Value{0};
  std::memcpy(to, &value, sizeof(value));
  present += there ? sizeof(value) : 0;
}

// The same of 8 in a row, behind which there are 8 more to read: without a branch for each.
template <typename Value>
void Place8(uint32_t map, const char*& present, char* to) {
  constexpr size_t kSize = kBits * sizeof(Value);
  if (map == 0) {
    std::memset(to, 0, kSize);
    return;
  }
  if (map == 0xff) {
    std::memcpy(to, present, kSize);
    present += kSize;
    return;
  }
  for (size_t i = 0; i < kBits; ++i) {
    const Value there = static_cast<Value>(map >> i & 1);
    const auto value = static_cast<Value>(Load<Value>(present) & static_cast<Value>(0 - there));
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    present += there * sizeof(value);
  }
}

template <typename Value>
void PlacePresentOf(absl::string_view map, const char* present, size_t values, char* to) {
  const char* const end = present + CountPresent(map, values) * sizeof(Value);
  const auto left = [&] { return static_cast<size_t>(end - present) / sizeof(Value); };
  size_t i = 0;
  for (; i + kBits <= values && left() >= kBits; i += kBits) {
    Place8<Value>(Load<uint8_t>(&map[i / kBits]), present, to + i * sizeof(Value));
  }
  for (; i < values; ++i) PlaceOne<Value>(IsThere(map, i), present, to + i * sizeof(Value));
}

}  // namespace

bool ManyZeros(absl::string_view values, size_t width) {
  return width == sizeof(uint32_t) ? ManyZerosIn<uint32_t>(values) : ManyZerosIn<uint16_t>(values);
}

size_t TakePresent(absl::string_view values, size_t width, char* map, char* present) {
  return width == sizeof(uint32_t) ? TakePresentOf<uint32_t>(values, map, present)
                                   : TakePresentOf<uint16_t>(values, map, present);
}

size_t CountPresent(absl::string_view map, size_t values) {
  const size_t whole = values / kBits;
  size_t count = CountBits(map.data(), whole);
  for (size_t i = whole * kBits; i < values; ++i) count += IsThere(map, i) ? 1 : 0;
  return count;
}

void PlacePresent(absl::string_view map, const char* present, size_t values, size_t width,
                  char* to) {
  if (width == sizeof(uint32_t)) return PlacePresentOf<uint32_t>(map, present, values, to);
  PlacePresentOf<uint16_t>(map, present, values, to);
}

}  // namespace sluice

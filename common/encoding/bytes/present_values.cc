#include "common/encoding/bytes/present_values.h"

#include <cstring>

#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

constexpr size_t kBits = 8;

template <typename Value>
Value Load(const char* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// About this many values are sampled to estimate how many are zero.
constexpr size_t kLooks = 1024;

template <typename Value>
bool ManyZerosIn(absl::string_view values) {
  const size_t count = values.size() / sizeof(Value);
  const size_t stride = count / kLooks | 1;  // odd, so that more columns of a matrix are sampled
  size_t looks = 0;
  size_t zeros = 0;
  for (size_t i = 0; i < count; i += stride, ++looks) {
    zeros += Load<Value>(values.data() + i * sizeof(Value)) == 0 ? 1 : 0;
  }
  return zeros > 0 && zeros >= looks / 16;
}

// Has no branch per value, since the processor could not predict it. Every value is written, and a
// zero is overwritten by the next value.
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

// Compiled for several processors, because newer ones count bits with one instruction.
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

// Places values [begin, end). Reads a value from `present` only if the map has it.
template <typename Value>
void PlaceEach(absl::string_view map, size_t begin, size_t end, const char*& present, char* to) {
  for (size_t i = begin; i < end; ++i) {
    const bool there = IsThere(map, i);
    const Value value = there ? Load<Value>(present) : Value{0};
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    present += there ? sizeof(value) : 0;
  }
}

// Places 8 values without a branch per value. Reads 8 values from `present`, unless the map has
// none.
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
void PlacePresentOf(absl::string_view map, absl::string_view present, size_t values, char* to) {
  const char* next = present.data();
  const char* const end = next + present.size();
  const size_t whole = values / kBits * kBits;
  for (size_t i = 0; i < whole; i += kBits) {
    const uint32_t eight = Load<uint8_t>(&map[i / kBits]);
    const auto left = static_cast<size_t>(end - next) / sizeof(Value);
    if (eight == 0 || left >= kBits) {
      Place8<Value>(eight, next, to + i * sizeof(Value));
    } else {
      PlaceEach<Value>(map, i, i + kBits, next, to);
    }
  }
  PlaceEach<Value>(map, whole, values, next, to);
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

void PlacePresent(absl::string_view map, absl::string_view present, size_t values, size_t width,
                  char* to) {
  if (width == sizeof(uint32_t)) return PlacePresentOf<uint32_t>(map, present, values, to);
  PlacePresentOf<uint16_t>(map, present, values, to);
}

}  // namespace sluice

#include "common/encoding/bytes/byte_planes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/encoding/bytes/float_bits.h"
#include "common/tensor/fetch_ahead.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

// Values of 4 bytes are split into two planes of halves first, and these into planes of bytes,
// because a vector unit narrows and widens numbers best by one step at a time. A block of halves
// stays in the first-level cache.
constexpr size_t kSplitBlock = 1024;

SLUICE_LOOP_BODY void SplitHalves(const char* __restrict halves, size_t count, char* __restrict low,
                                  char* __restrict high) {
  for (size_t i = 0; i < count; ++i) {
    low[i] = static_cast<char>(HalfAt(halves, i) & 0xff);
    high[i] = static_cast<char>(HalfAt(halves, i) >> 8);
  }
}

SLUICE_LOOP_BODY void JoinHalves(const char* __restrict low, const char* __restrict high,
                                 size_t count, char* __restrict halves) {
  for (size_t i = 0; i < count; ++i) {
    const auto half =
        static_cast<uint16_t>(static_cast<uint8_t>(low[i]) | static_cast<uint8_t>(high[i]) << 8);
    std::memcpy(halves + i * sizeof(half), &half, sizeof(half));
  }
}

SLUICE_VECTOR_CLONES
void To2Planes(const char* values, size_t count, char* low, char* high) {
  SplitHalves(values, count, low, high);
}

SLUICE_VECTOR_CLONES
void From2Planes(const char* low, const char* high, size_t count, char* values) {
  JoinHalves(low, high, count, values);
}

SLUICE_VECTOR_CLONES
void To4Planes(const char* values, size_t count, char* const* planes) {
  uint16_t low[kSplitBlock];
  uint16_t high[kSplitBlock];
  for (size_t begin = 0; begin < count; begin += kSplitBlock) {
    const size_t size = std::min(kSplitBlock, count - begin);
    const char* const from = values + begin * sizeof(uint32_t);
    FetchAhead(from + size * sizeof(uint32_t),
               std::min(kSplitBlock, count - begin - size) * sizeof(uint32_t));
    for (size_t i = 0; i < size; ++i) {
      uint32_t value;
      std::memcpy(&value, from + i * sizeof(value), sizeof(value));
      low[i] = static_cast<uint16_t>(value & 0xffff);
      high[i] = static_cast<uint16_t>(value >> 16);
    }
    SplitHalves(reinterpret_cast<const char*>(low), size, planes[0] + begin, planes[1] + begin);
    SplitHalves(reinterpret_cast<const char*>(high), size, planes[2] + begin, planes[3] + begin);
  }
}

SLUICE_VECTOR_CLONES
void From4Planes(const Planes& planes, size_t count, char* values) {
  uint16_t low[kSplitBlock];
  uint16_t high[kSplitBlock];
  for (size_t begin = 0; begin < count; begin += kSplitBlock) {
    const size_t size = std::min(kSplitBlock, count - begin);
    JoinHalves(planes[0].data() + begin, planes[1].data() + begin, size,
               reinterpret_cast<char*>(low));
    JoinHalves(planes[2].data() + begin, planes[3].data() + begin, size,
               reinterpret_cast<char*>(high));
    for (size_t i = 0; i < size; ++i) {
      const uint32_t value = static_cast<uint32_t>(low[i]) | static_cast<uint32_t>(high[i]) << 16;
      std::memcpy(values + (begin + i) * sizeof(value), &value, sizeof(value));
    }
  }
}

}  // namespace

void SplitPlanes(const char* values, size_t count, size_t width, const PlaneTargets& planes) {
  if (width == 1) {
    std::memcpy(planes[0], values, count);
  } else if (width == 2) {
    To2Planes(values, count, planes[0], planes[1]);
  } else {
    To4Planes(values, count, planes.data());
  }
}

void JoinPlanes(const Planes& planes, size_t width, char* values) {
  const size_t count = planes[0].size();
  if (width == 2) {
    From2Planes(planes[0].data(), planes[1].data(), count, values);
  } else {
    From4Planes(planes, count, values);
  }
}

}  // namespace sluice

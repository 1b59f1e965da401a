#include "common/tensor/stripes.h"

namespace sluice {
namespace {

constexpr uint64_t kFewestUnits = 512;
constexpr uint64_t kSmallest = 64;                // 256 bytes
constexpr uint64_t kLargest = uint64_t{1} << 18;  // 1 MiB

uint64_t UnitFor(uint64_t size) {
  uint64_t unit = kSmallest;
  while (unit < kLargest && 2 * unit * kFewestUnits <= size) unit *= 2;
  return unit;
}

}  // namespace

Stripes::Stripes(uint64_t size, uint32_t count)
    : size_(size), count_(count), unit_(UnitFor(size)) {}

uint64_t Stripes::Before(uint32_t stripe, uint64_t offset) const {
  const uint64_t unit = offset / unit_;
  const uint64_t rounds = unit / count_;
  const uint64_t turn = unit % count_;
  const uint64_t whole = rounds + (stripe < turn ? 1 : 0);
  return whole * unit_ + (stripe == turn ? offset % unit_ : 0);
}

uint64_t Stripes::InVector(uint32_t stripe, uint64_t offset) const {
  return (offset / unit_ * count_ + stripe) * unit_ + offset % unit_;
}

}  // namespace sluice

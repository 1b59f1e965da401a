// Cuts a vector into stripes, one for each of several servers, that are equally large whatever the
// sizes of the tensors are.
//
// The vector is cut into units of a fixed size, and unit u is in stripe u mod S, as in a disk array
// (RAID 0). The size of a unit depends on the vector alone, not on the number of stripes. So what
// is computed for each unit, such as a sum of squares, has the same bits with any number of
// stripes, if the results are then combined in the order of the units.

#ifndef SLUICE_COMMON_TENSOR_STRIPES_H_
#define SLUICE_COMMON_TENSOR_STRIPES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice {

// Immutable. Sizes and offsets count elements.
class Stripes {
 public:
  // `count` is at least 1.
  Stripes(uint64_t size, uint32_t count);

  uint64_t size() const { return size_; }
  uint32_t count() const { return count_; }

  // The size of each unit but the last one of the vector: the largest power of two that gives at
  // least 512 units, but not less than a few cache lines and not more than 1 MiB. With 512 units
  // or more, none of 4 stripes is more than 1 % larger than another.
  uint64_t unit() const { return unit_; }
  uint64_t units() const { return UnitsOf(size_); }
  uint32_t StripeOf(uint64_t offset) const {
    return static_cast<uint32_t>(offset / unit_ % count_);
  }

  // How many elements of the stripe lie before `offset` of the vector.
  uint64_t Before(uint32_t stripe, uint64_t offset) const;
  uint64_t SizeOf(uint32_t stripe) const { return Before(stripe, size_); }
  // The place in the vector of the element at `offset` of the stripe.
  uint64_t InVector(uint32_t stripe, uint64_t offset) const;

 private:
  uint64_t UnitsOf(uint64_t size) const { return (size + unit_ - 1) / unit_; }

  uint64_t size_;
  uint32_t count_;
  uint64_t unit_;
};

// One of the stripes.
struct Stripe {
  Stripes all;
  uint32_t index = 0;
};

// Calls act(begin, end) for the part of [begin, end) in each unit of that size, in order. Offsets
// are those of a whole vector, or those of a stripe.
template <typename Act>
void ForEachUnit(uint64_t unit, uint64_t begin, uint64_t end, const Act& act) {
  while (begin < end) {
    const uint64_t unit_end = (begin / unit + 1) * unit;
    act(begin, std::min(end, unit_end));
    begin = unit_end;
  }
}

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_STRIPES_H_

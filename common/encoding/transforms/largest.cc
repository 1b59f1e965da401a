#include "common/encoding/transforms/largest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/encoding/bytes/float_bits.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

// A bin holds magnitudes with the same exponent and the same first four bits of the fraction.
constexpr uint32_t kBinShift = 19;
constexpr size_t kBins = size_t{1} << 12;

// Writes the places of all magnitudes that are `least` or more, where `first` is the place of the
// first value, and returns how many there are. Most blocks have none and are skipped as a whole.
SLUICE_VECTOR_CLONES
size_t FindFrom(const float* values, size_t count, uint32_t first, uint32_t least,
                uint32_t* __restrict places) {
  constexpr size_t kBlock = 32;
  // Signed, because every vector unit can compare signed numbers.
  const auto bound = static_cast<int32_t>(least);
  size_t found = 0;
  size_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    const float* const block = values + begin;
    int32_t most = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      const auto magnitude = static_cast<int32_t>(MagnitudeBits(block[i]));
      most = magnitude > most ? magnitude : most;
    }
    if (most < bound) continue;
    uint32_t here = 0;
    for (uint32_t i = 0; i < kBlock; ++i) {
      const auto magnitude = static_cast<int32_t>(MagnitudeBits(block[i]));
      here |= (magnitude < bound ? 0u : 1u) << i;
    }
    for (; here != 0; here &= here - 1) {
      places[found++] =
          first + static_cast<uint32_t>(begin) + static_cast<uint32_t>(__builtin_ctz(here));
    }
  }
  for (; begin < count; ++begin) {
    if (MagnitudeBits(values[begin]) >= least) {
      places[found++] = first + static_cast<uint32_t>(begin);
    }
  }
  return found;
}

// Counts the magnitudes in each bin.
class Histogram {
 public:
  explicit Histogram(absl::Span<const float> values) : counts_(kTables * kBins) {
    size_t i = 0;
    for (; i + kTables <= values.size(); i += kTables) {
      for (size_t table = 0; table < kTables; ++table) {
        ++counts_[table * kBins + (MagnitudeBits(values[i + table]) >> kBinShift)];
      }
    }
    for (; i < values.size(); ++i) ++counts_[MagnitudeBits(values[i]) >> kBinShift];
    for (size_t other = kBins; other < kTables * kBins; ++other) {
      counts_[other % kBins] += counts_[other];
    }
  }

  // Returns the bin of the magnitude with that rank, where the largest has rank 1, and how many
  // magnitudes of that bin are among the first `rank`.
  std::pair<uint32_t, size_t> Find(size_t rank) const {
    size_t above = 0;
    size_t bin = kBins - 1;
    while (above + counts_[bin] < rank) above += counts_[bin--];
    return {static_cast<uint32_t>(bin), rank - above};
  }

 private:
  // Several tables, because two increments of the same counter in a row wait for each other.
  static constexpr size_t kTables = 4;

  std::vector<uint32_t> counts_;
};

// Takes at most 2^12 values, in groups of 16 that are spread evenly.
std::vector<float> Sample(absl::Span<const float> values) {
  constexpr size_t kLine = 16;
  constexpr size_t kLines = 256;
  const size_t stride = std::max(kLine, values.size() / kLines / kLine * kLine);
  std::vector<float> sample;
  sample.reserve(kLines * kLine);
  for (size_t line = 0; line < kLines && line * stride < values.size(); ++line) {
    const absl::Span<const float> part = values.subspan(line * stride, kLine);
    sample.insert(sample.end(), part.begin(), part.end());
  }
  return sample;
}

// Implements FindLargest().
class Largest {
 public:
  Largest(absl::Span<const float> values, size_t kept) : values_(values), kept_(kept) {
    if (values_.size() >= kWorthGuessing) Collect(Guess());
    if (places_.size() < kept_) Collect(Histogram(values_).Find(kept_).first << kBinShift);
    DropSmallest();
  }

  std::vector<uint32_t> places() && { return std::move(places_); }

 private:
  // Guesses, from a sample, a bound that `kept_` magnitudes or slightly more reach. A pass that
  // compares with a bound costs a quarter of one that counts.
  uint32_t Guess() const {
    const std::vector<float> sample = Sample(values_);
    const double mean = static_cast<double>(kept_) * static_cast<double>(sample.size()) /
                        static_cast<double>(values_.size());
    const auto rank = static_cast<size_t>(mean + 4 * std::sqrt(mean) + 4);
    if (rank >= sample.size()) return 0;
    return std::min(Histogram(sample).Find(rank).first << kBinShift, kInfinityBits);
  }

  void Collect(uint32_t least) {
    constexpr size_t kPart = 4096;
    uint32_t found[kPart];
    places_.clear();
    for (size_t begin = 0; begin < values_.size(); begin += kPart) {
      const size_t count = std::min(kPart, values_.size() - begin);
      const size_t size =
          FindFrom(values_.data() + begin, count, static_cast<uint32_t>(begin), least, found);
      places_.insert(places_.end(), found, found + size);
    }
  }

  // Keeps only the `kept_` largest of the places found.
  void DropSmallest() {
    if (places_.size() == kept_) return;
    std::vector<float> candidates;
    candidates.reserve(places_.size());
    for (uint32_t place : places_) candidates.push_back(values_[place]);
    const auto [bin, from_bin] = Histogram(candidates).Find(kept_);
    const uint64_t least = LeastOf(bin, from_bin);
    size_t size = 0;
    for (uint32_t place : places_) {
      places_[size] = place;
      size += KeyOf(place) >= least ? 1 : 0;
    }
    places_.resize(size);
  }

  // Returns the key with that rank among the places in `bin`.
  uint64_t LeastOf(uint32_t bin, size_t rank) const {
    std::vector<uint64_t> keys;
    for (uint32_t place : places_) {
      if (MagnitudeBits(values_[place]) >> kBinShift == bin) keys.push_back(KeyOf(place));
    }
    const auto found = keys.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(keys.begin(), found, keys.end(), std::greater<>());
    return *found;
  }

  // A greater magnitude has a greater key. Of equal magnitudes the first has the greatest key.
  uint64_t KeyOf(uint32_t place) const {
    return uint64_t{MagnitudeBits(values_[place])} << 32 | (UINT32_MAX - place);
  }

  static constexpr size_t kWorthGuessing = size_t{1} << 15;

  const absl::Span<const float> values_;
  const size_t kept_;
  std::vector<uint32_t> places_;
};

}  // namespace

std::vector<uint32_t> FindLargest(absl::Span<const float> values, size_t kept) {
  return Largest(values, kept).places();
}

}  // namespace sluice

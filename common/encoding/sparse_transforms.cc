// top-k and random-k: few of the values, and where they belong.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/builtin_transforms.h"
#include "common/encoding/float_bits.h"
#include "common/encoding/transform.h"
#include "common/error.h"
#include "common/vector_clones.h"

namespace sluice {
namespace {

constexpr size_t kMostVarint = 3;  // bytes: enough for 2^21, and a chunk has 2^18 elements

const Transform& Values(bool half) { return half ? Float16Transform() : Float32Transform(); }

uint64_t KeptOf(size_t count, double share) {
  const auto kept = static_cast<uint64_t>(std::llround(share * static_cast<double>(count)));
  return std::min<uint64_t>(count, std::max<uint64_t>(kept, 1));
}

absl::Status Broken(absl::string_view what) {
  return MakeError(Reason::kBadChunk, absl::StrCat("a sparse chunk ", what));
}

absl::Status CheckKept(const ChunkEncoding& how) {
  if (how.kept >= 1 && how.kept <= how.count) return absl::OkStatus();
  return Broken(absl::StrCat("has ", how.kept, " values for ", how.count,
                             " elements, expected at least 1 and no more than those"));
}

std::string EncodeValuesOf(const std::vector<float>& values, bool half) {
  ChunkEncoding how;
  how.count = values.size();
  std::string bytes;
  Values(half).Encode(values, Encoding(), ChunkContext(), &how, &bytes);
  return bytes;
}

absl::StatusOr<std::vector<float>> DecodeValuesOf(absl::string_view bytes,
                                                  const ChunkEncoding& how) {
  ChunkEncoding of_values;
  of_values.count = how.kept;
  std::vector<float> values(how.kept);
  const absl::Status decoded = Values(how.half).Decode(bytes, of_values, absl::MakeSpan(values));
  if (!decoded.ok()) return decoded;
  return values;
}

// ---- top-k (Aji and Heafield 2017; Lin et al. 2018) ----

// Of a magnitude's bits: its exponent and four bits of its fraction.
constexpr uint32_t kBinShift = 19;
constexpr size_t kBins = size_t{1} << 12;

// The places of the `kept` largest magnitudes in ascending order; of equal ones, the first.
class Largest {
 public:
  Largest(absl::Span<const float> values, size_t kept) : values_(values), kept_(kept) {
    Count();
    FindBin();
    Collect();
  }

  std::vector<uint32_t> places() && { return std::move(places_); }

 private:
  // In several histograms, so that neighbours in one bin do not wait for each other.
  void Count() {
    constexpr size_t kTables = 4;
    std::vector<uint32_t> tables(kTables * kBins);
    size_t i = 0;
    for (; i + kTables <= values_.size(); i += kTables) {
      for (size_t table = 0; table < kTables; ++table) {
        ++tables[table * kBins + (MagnitudeBits(values_[i + table]) >> kBinShift)];
      }
    }
    for (; i < values_.size(); ++i) ++tables[MagnitudeBits(values_[i]) >> kBinShift];
    counts_.assign(kBins, 0);
    for (size_t table = 0; table < kTables; ++table) {
      for (size_t bin = 0; bin < kBins; ++bin) counts_[bin] += tables[table * kBins + bin];
    }
  }

  // The bin that the smallest of those kept is in; all above it are kept.
  void FindBin() {
    size_t above = 0;
    size_t bin = kBins - 1;
    while (above + counts_[bin] < kept_) above += counts_[bin--];
    from_bin_ = kept_ - above;
    bin_ = static_cast<uint32_t>(bin);
  }

  // Blocks in which nothing is large enough, the most, are passed over at once.
  void Collect() {
    constexpr size_t kBlock = 32;
    const uint32_t least = bin_ << kBinShift;
    for (size_t begin = 0; begin < values_.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, values_.size() - begin);
      if (!AnyFrom(values_.data() + begin, count, least)) continue;
      for (size_t i = begin; i < begin + count; ++i) {
        if (MagnitudeBits(values_[i]) >= least) places_.push_back(static_cast<uint32_t>(i));
      }
    }
    DropSmallest();
  }

  SLUICE_LOOP_BODY static bool AnyFrom(const float* values, size_t count, uint32_t least) {
    uint32_t any = 0;
    for (size_t i = 0; i < count; ++i) {
      any |= static_cast<uint32_t>(MagnitudeBits(values[i]) >= least);
    }
    return any != 0;
  }

  // Of the bin's own, all but the largest `from_bin_`.
  void DropSmallest() {
    const auto in_bin = [this](uint32_t place) {
      return MagnitudeBits(values_[place]) >> kBinShift == bin_;
    };
    std::vector<uint32_t> candidates;
    std::copy_if(places_.begin(), places_.end(), std::back_inserter(candidates), in_bin);
    const auto larger = [this](uint32_t a, uint32_t b) {
      const uint32_t x = MagnitudeBits(values_[a]);
      const uint32_t y = MagnitudeBits(values_[b]);
      return x != y ? x > y : a < b;
    };
    if (candidates.size() == from_bin_) return;
    const auto last = candidates.begin() + static_cast<std::ptrdiff_t>(from_bin_);
    std::nth_element(candidates.begin(), last, candidates.end(), larger);
    const uint32_t first_dropped = *last;
    places_.erase(std::remove_if(places_.begin(), places_.end(),
                                 [&](uint32_t place) {
                                   return in_bin(place) && !larger(place, first_dropped);
                                 }),
                  places_.end());
  }

  const absl::Span<const float> values_;
  const size_t kept_;
  std::vector<uint32_t> counts_;  // of each bin
  uint32_t bin_ = 0;
  size_t from_bin_ = 0;  // so many of it are kept
  std::vector<uint32_t> places_;
};

void AppendVarint(uint32_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

class TopK final : public Transform {
 public:
  // The values, then for each how many elements were passed over before it.
  void Encode(absl::Span<const float> values, const Encoding& encoding,
              const ChunkContext& /*context*/, ChunkEncoding* how,
              std::string* bytes) const override {
    how->kept = KeptOf(values.size(), encoding.share);
    how->half = encoding.half;
    const std::vector<uint32_t> places = Largest(values, how->kept).places();
    std::vector<float> kept;
    kept.reserve(places.size());
    for (uint32_t place : places) kept.push_back(values[place]);
    *bytes = EncodeValuesOf(kept, how->half);
    uint32_t next = 0;
    for (uint32_t place : places) {
      AppendVarint(place - next, bytes);
      next = place + 1;
    }
  }

  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const override {
    const absl::Status kept = CheckKept(how);
    if (!kept.ok()) return kept;
    return how.kept * (Values(how.half).width() + kMostVarint);
  }

  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const override {
    const size_t value_bytes = how.kept * Values(how.half).width();
    if (bytes.size() < value_bytes) return Broken("ends within its values");
    const auto kept = DecodeValuesOf(bytes.substr(0, value_bytes), how);
    if (!kept.ok()) return kept.status();
    std::fill(values.begin(), values.end(), 0.0f);
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data()) + value_bytes;
    const auto* const end = reinterpret_cast<const uint8_t*>(bytes.data()) + bytes.size();
    uint64_t place = 0;
    for (float value : *kept) {
      uint32_t gap = 0;
      bool whole = false;
      for (size_t i = 0; i < kMostVarint && at != end && !whole; ++i, ++at) {
        gap |= static_cast<uint32_t>(*at & 0x7f) << (7 * i);
        whole = *at < 0x80;
      }
      if (!whole) return Broken("ends within the place of a value, or has one too large");
      place += gap;
      if (place >= values.size()) {
        return Broken(absl::StrCat("has a value at element ", place, " of ", values.size()));
      }
      values[place++] = value;
    }
    if (at != end) return Broken(absl::StrCat("has ", end - at, " bytes after its last place"));
    return absl::OkStatus();
  }
};

// ---- random-k (Stich et al. 2018) ----

// SplitMix64 (Steele et al. 2014): number `index` of those that begin with `seed`.
uint64_t Random(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Calls place(i) for `kept` of `count` elements, in ascending order: one out of each of as many
// equal parts, so that none is drawn twice.
template <typename Place>
void ForEachRandomPlace(uint64_t seed, uint64_t kept, uint64_t count, const Place& place) {
  for (uint64_t i = 0; i < kept; ++i) {
    const uint64_t begin = i * count / kept;
    const uint64_t end = (i + 1) * count / kept;
    place(begin + Random(seed, i) % (end - begin));
  }
}

class RandomK final : public Transform {
 public:
  void Encode(absl::Span<const float> values, const Encoding& encoding, const ChunkContext& context,
              ChunkEncoding* how, std::string* bytes) const override {
    how->kept = KeptOf(values.size(), encoding.share);
    how->half = encoding.half;
    how->seed = context.seed;
    std::vector<float> kept;
    kept.reserve(how->kept);
    ForEachRandomPlace(how->seed, how->kept, values.size(),
                       [&](uint64_t place) { kept.push_back(values[place]); });
    *bytes = EncodeValuesOf(kept, how->half);
  }

  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const override {
    const absl::Status kept = CheckKept(how);
    if (!kept.ok()) return kept;
    return how.kept * Values(how.half).width();
  }

  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const override {
    const auto kept = DecodeValuesOf(bytes, how);
    if (!kept.ok()) return kept.status();
    std::fill(values.begin(), values.end(), 0.0f);
    auto next = kept->begin();
    ForEachRandomPlace(how.seed, how.kept, values.size(),
                       [&](uint64_t place) { values[place] = *next++; });
    return absl::OkStatus();
  }
};

}  // namespace

const Transform& TopKTransform() {
  static const auto* const transform = new TopK();
  return *transform;
}

const Transform& RandomKTransform() {
  static const auto* const transform = new RandomK();
  return *transform;
}

}  // namespace sluice

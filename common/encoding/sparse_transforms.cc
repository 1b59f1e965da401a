// top-k and random-k: few of the values, and where they belong.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/encoding/builtin_transforms.h"
#include "common/encoding/float_bits.h"
#include "common/encoding/transform.h"
#include "common/error.h"
#include "common/tensor_chunk.h"
#include "common/vector_clones.h"
#include "common/vector_math.h"

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
constexpr uint32_t kInfinity = 0x7f800000u;

// The places, `first` being that of the first value, of magnitudes that are `least` or more;
// returns how many. Blocks in which there is none, the most, are passed over at once.
SLUICE_VECTOR_CLONES
size_t FindFrom(const float* values, size_t count, uint32_t first, uint32_t least,
                uint32_t* __restrict places) {
  constexpr size_t kBlock = 32;
  // Signed, for the comparison that every vector unit has.
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

// How many magnitudes there are in each bin.
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

  // The bin that number `rank` of the magnitudes is in, beginning at the largest with 1, and how
  // many of that bin are among the first `rank`.
  std::pair<uint32_t, size_t> Find(size_t rank) const {
    size_t above = 0;
    size_t bin = kBins - 1;
    while (above + counts_[bin] < rank) above += counts_[bin--];
    return {static_cast<uint32_t>(bin), rank - above};
  }

 private:
  // Several, so that neighbours in one bin do not wait for each other.
  static constexpr size_t kTables = 4;

  std::vector<uint32_t> counts_;
};

// Some of the values, in lines of 16 from all over them: no more than 2^12.
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

// The places of the `kept` largest magnitudes in ascending order; of equal ones, the first.
class Largest {
 public:
  Largest(absl::Span<const float> values, size_t kept) : values_(values), kept_(kept) {
    if (values_.size() >= kWorthGuessing) Collect(Guess());
    if (places_.size() < kept_) Collect(Histogram(values_).Find(kept_).first << kBinShift);
    DropSmallest();
  }

  std::vector<uint32_t> places() && { return std::move(places_); }

 private:
  // What at least `kept_` magnitudes are likely to reach, judged by a sample, and not many more: a
  // pass that only compares costs a quarter of one that counts.
  uint32_t Guess() const {
    const std::vector<float> sample = Sample(values_);
    const double mean = static_cast<double>(kept_) * static_cast<double>(sample.size()) /
                        static_cast<double>(values_.size());
    const auto rank = static_cast<size_t>(mean + 4 * std::sqrt(mean) + 4);
    if (rank >= sample.size()) return 0;
    return std::min(Histogram(sample).Find(rank).first << kBinShift, kInfinity);
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

  // Of at least `kept_` places, all but those of the largest.
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

  // The key of number `rank` of those in `bin`.
  uint64_t LeastOf(uint32_t bin, size_t rank) const {
    std::vector<uint64_t> keys;
    for (uint32_t place : places_) {
      if (MagnitudeBits(values_[place]) >> kBinShift == bin) keys.push_back(KeyOf(place));
    }
    const auto found = keys.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(keys.begin(), found, keys.end(), std::greater<>());
    return *found;
  }

  // Greater for greater magnitudes, and of equal ones for the first.
  uint64_t KeyOf(uint32_t place) const {
    return uint64_t{MagnitudeBits(values_[place])} << 32 | (UINT32_MAX - place);
  }

  static constexpr size_t kWorthGuessing = size_t{1} << 15;

  const absl::Span<const float> values_;
  const size_t kept_;
  std::vector<uint32_t> places_;
};

void AppendVarint(uint32_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

class TopK final : public Transform {
 public:
  // The values, then for each how many elements were passed over before it.
  void Encode(absl::Span<const float> values, const Encoding& encoding, const ChunkContext& context,
              ChunkEncoding* how, std::string* bytes) const override {
    EncodeIfFinite(values, encoding, context, how, bytes);
  }

  // What is not finite is among the largest.
  bool EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                      const ChunkContext& /*context*/, ChunkEncoding* how,
                      std::string* bytes) const override {
    how->kept = KeptOf(values.size(), encoding.share);
    how->half = encoding.half;
    const std::vector<uint32_t> places = Largest(values, how->kept).places();
    std::vector<float> kept;
    kept.reserve(places.size());
    for (uint32_t place : places) kept.push_back(values[place]);
    if (FindNotFinite(AsPiece(kept)).has_value()) return false;
    *bytes = EncodeValuesOf(kept, how->half);
    bytes->reserve(how->kept * (Values(how->half).width() + kMostVarint));
    uint32_t next = 0;
    for (uint32_t place : places) {
      AppendVarint(place - next, bytes);
      next = place + 1;
    }
    return true;
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

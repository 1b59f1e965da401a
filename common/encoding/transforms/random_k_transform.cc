// random-k (Stich et al. 2018): sends values at random places. Both sides know the seed.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/encoding/transform.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/encoding/transforms/kept_values.h"

namespace sluice {
namespace {

// SplitMix64 (Steele et al. 2014): returns number `index` of the sequence for `seed`.
uint64_t Random(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Calls place(i) for `kept` of `count` elements, in ascending order. It draws one element from each
// of `kept` equal parts, so that none is drawn twice.
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
    *bytes = EncodeKept(kept, how->half);
  }

  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const override {
    const absl::Status kept = CheckKept(how);
    if (!kept.ok()) return kept;
    return how.kept * WidthOfKept(how.half);
  }

  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const override {
    const auto kept = DecodeKept(bytes, how);
    if (!kept.ok()) return kept.status();
    std::fill(values.begin(), values.end(), 0.0f);
    auto next = kept->begin();
    ForEachRandomPlace(how.seed, how.kept, values.size(),
                       [&](uint64_t place) { values[place] = *next++; });
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<const Transform> MakeRandomKTransform() { return std::make_unique<RandomK>(); }

}  // namespace sluice

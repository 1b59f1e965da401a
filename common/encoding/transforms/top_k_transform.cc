// top-k (Aji and Heafield 2017; Lin et al. 2018): sends the largest values and their places.
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/varint.h"
#include "common/encoding/transform.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/encoding/transforms/kept_values.h"
#include "common/encoding/transforms/largest.h"
#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

constexpr size_t kMostVarint = 3;  // bytes: enough for 2^21, and a chunk has 2^18 elements

class TopK final : public Transform {
 public:
  // First the values, then for each value the number of elements skipped before it.
  void Encode(absl::Span<const float> values, const Encoding& encoding, const ChunkContext& context,
              ChunkEncoding* how, std::string* bytes) const override {
    EncodeIfFinite(values, encoding, context, how, bytes);
  }

  // Checks only the largest values, since NaN and infinity count as the largest.
  bool EncodeIfFinite(absl::Span<const float> values, const Encoding& encoding,
                      const ChunkContext& /*context*/, ChunkEncoding* how,
                      std::string* bytes) const override {
    how->kept = KeptOf(values.size(), encoding.share);
    how->half = encoding.half;
    const std::vector<uint32_t> places = FindLargest(values, how->kept);
    std::vector<float> kept;
    kept.reserve(places.size());
    for (uint32_t place : places) kept.push_back(values[place]);
    if (FindNotFinite(AsPiece(kept)).has_value()) return false;
    *bytes = EncodeKept(kept, how->half);
    bytes->reserve(how->kept * (WidthOfKept(how->half) + kMostVarint));
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
    return how.kept * (WidthOfKept(how.half) + kMostVarint);
  }

  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const override {
    const size_t value_bytes = how.kept * WidthOfKept(how.half);
    if (bytes.size() < value_bytes) return BrokenSparseChunk("ends within its values");
    const auto kept = DecodeKept(bytes.substr(0, value_bytes), how);
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
      if (!whole)
        return BrokenSparseChunk("ends within the place of a value, or has one too large");
      place += gap;
      if (place >= values.size()) {
        return BrokenSparseChunk(
            absl::StrCat("has a value at element ", place, " of ", values.size()));
      }
      values[place++] = value;
    }
    if (at != end)
      return BrokenSparseChunk(absl::StrCat("has ", end - at, " bytes after its last place"));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<const Transform> MakeTopKTransform() { return std::make_unique<TopK>(); }

}  // namespace sluice

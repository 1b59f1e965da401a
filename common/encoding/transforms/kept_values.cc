#include "common/encoding/transforms/kept_values.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/transforms/builtin_transforms.h"

namespace sluice {
namespace {

std::unique_ptr<const Transform> MakeValues(bool half) {
  return half ? MakeFloat16Transform() : MakeFloat32Transform();
}

}  // namespace

uint64_t KeptOf(size_t count, double share) {
  const auto kept = static_cast<uint64_t>(std::llround(share * static_cast<double>(count)));
  return std::min<uint64_t>(count, std::max<uint64_t>(kept, 1));
}

absl::Status BrokenSparseChunk(absl::string_view what) {
  return MakeError(Reason::kBadChunk, absl::StrCat("a sparse chunk ", what));
}

absl::Status CheckKept(const ChunkEncoding& how) {
  if (how.kept >= 1 && how.kept <= how.count) return absl::OkStatus();
  return BrokenSparseChunk(absl::StrCat("has ", how.kept, " values for ", how.count,
                                        " elements, expected at least 1 and no more than those"));
}

std::string EncodeKept(const std::vector<float>& values, bool half) {
  ChunkEncoding how;
  how.count = values.size();
  std::string bytes;
  MakeValues(half)->Encode(values, Encoding(), ChunkContext(), &how, &bytes);
  return bytes;
}

absl::StatusOr<std::vector<float>> DecodeKept(absl::string_view bytes, const ChunkEncoding& how) {
  ChunkEncoding of_values;
  of_values.count = how.kept;
  std::vector<float> values(how.kept);
  const absl::Status decoded =
      MakeValues(how.half)->Decode(bytes, of_values, absl::MakeSpan(values));
  if (!decoded.ok()) return decoded;
  return values;
}

size_t WidthOfKept(bool half) { return half ? sizeof(uint16_t) : sizeof(float); }

}  // namespace sluice

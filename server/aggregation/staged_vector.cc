#include "server/aggregation/staged_vector.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// Puts floats in the place of an encoded chunk's payload. What that says of its size was checked
// against the layout before.
absl::Status Decode(TensorChunk& chunk, const TransformRegistry& transforms) {
  const auto floats = std::make_shared<FloatBuffer>(chunk.size());
  const absl::Status decoded = DecodeValues(*chunk.encoded, floats->span(), transforms);
  if (!decoded.ok()) return decoded;
  chunk.encoded.reset();
  chunk.pieces = {AsPiece(floats->span())};
  chunk.owner = floats;
  return absl::OkStatus();
}

absl::optional<size_t> FindNotFiniteIn(FloatPiece floats, Parallel* parallel) {
  if (parallel == nullptr || floats.size() <= kPartElements) return FindNotFinite(floats);
  std::vector<absl::optional<size_t>> found(PartsOf(floats.size()));
  ForParts(*parallel, floats.size(), [&](size_t part, uint64_t begin, uint64_t end) {
    found[part] = FindNotFinite(floats.subspan(begin, end - begin));
  });
  for (size_t part = 0; part < found.size(); ++part) {
    if (found[part].has_value()) return part * kPartElements + *found[part];
  }
  return absl::nullopt;
}

// Of floats whose first is that element of the vector.
absl::Status CheckFinite(uint64_t first, FloatPiece floats, const Layout& layout,
                         Parallel* parallel) {
  const absl::optional<size_t> bad = FindNotFiniteIn(floats, parallel);
  if (!bad.has_value()) return absl::OkStatus();
  return MakeError(Reason::kNotFinite,
                   absl::StrCat(layout.ElementName(first + *bad), " is ", floats[*bad].value,
                                ", expected a finite number; lower the learning rate, or look "
                                "for the batch that caused it"));
}

// Now, while the floats are in the cache.
absl::Status CheckFinite(const TensorChunk& chunk, const Layout& layout, Parallel* parallel) {
  uint64_t offset = chunk.offset;
  for (const FloatPiece& floats : chunk.pieces) {
    const absl::Status finite = CheckFinite(offset, floats, layout, parallel);
    if (!finite.ok()) return finite;
    offset += floats.size();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorChunk> PrepareChunk(TensorChunk chunk, const Layout& layout,
                                         const TransformRegistry& transforms, Parallel* parallel) {
  if (chunk.encoded.has_value()) {
    const absl::Status decoded = Decode(chunk, transforms);
    if (!decoded.ok()) return decoded;
  }
  const absl::Status finite = CheckFinite(chunk, layout, parallel);
  if (!finite.ok()) return finite;
  return chunk;
}

StagedVector::StagedVector(std::shared_ptr<const Layout> layout)
    : layout_(std::move(layout)), coverage_(layout_->size()) {}

absl::Status StagedVector::Add(TensorChunk chunk, Parallel* parallel) {
  const absl::Status reserved = Reserve(chunk);
  if (!reserved.ok()) return reserved;
  CHECK(!chunk.encoded.has_value());
  const absl::Status finite = CheckFinite(chunk, *layout_, parallel);
  if (!finite.ok()) return finite;
  Place(std::move(chunk));
  return absl::OkStatus();
}

absl::Status StagedVector::Reserve(const TensorChunk& chunk) {
  return coverage_.Add(chunk.offset, chunk.size());
}

void StagedVector::Place(TensorChunk chunk) {
  uint64_t offset = chunk.offset;
  for (const FloatPiece& floats : chunk.pieces) {
    pieces_.push_back({offset, floats});
    offset += floats.size();
  }
  owners_.push_back(std::move(chunk.owner));
}

void StagedVector::Seal() {
  const auto before = [](const Placed& a, const Placed& b) { return a.offset < b.offset; };
  if (!std::is_sorted(pieces_.begin(), pieces_.end(), before)) {
    std::sort(pieces_.begin(), pieces_.end(), before);
  }
  sealed_ = true;
}

void StagedVector::ForEachPiece(
    uint64_t begin, uint64_t end,
    absl::FunctionRef<void(uint64_t offset, FloatPiece floats)> piece) const {
  CHECK(sealed_);
  auto at = std::partition_point(pieces_.begin(), pieces_.end(),
                                 [begin](const Placed& placed) { return placed.end() <= begin; });
  for (; at != pieces_.end() && at->offset < end; ++at) {
    const uint64_t from = std::max(begin, at->offset);
    const uint64_t to = std::min(end, at->end());
    piece(from, at->floats.subspan(from - at->offset, to - from));
  }
}

void StagedVector::CopyTo(absl::Span<float> to) const {
  ForEachPiece(0, to.size(), [&](uint64_t offset, FloatPiece floats) {
    sluice::CopyTo(floats, to.subspan(offset, floats.size()));
  });
}

double StagedVector::ParameterNorm() const {
  double squares = 0;
  for (const KindRun& run : layout_->Runs()) {
    if (run.kind != RangeKind::kParameter) continue;
    ForEachPiece(run.begin, run.end,
                 [&](uint64_t, FloatPiece floats) { squares += SumOfSquares(floats); });
  }
  return std::sqrt(squares);
}

}  // namespace sluice

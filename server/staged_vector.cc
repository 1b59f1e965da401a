#include "server/staged_vector.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/encoding/codec.h"
#include "common/error.h"
#include "common/vector_copy.h"
#include "common/vector_math.h"
#include "server/float_buffer.h"

namespace sluice {
namespace {

// Puts floats in the place of an encoded chunk's payload. What that says of its size was checked
// against the layout before.
absl::Status Decode(TensorChunk& chunk) {
  const auto floats = std::make_shared<FloatBuffer>(chunk.size());
  const absl::Status decoded = DecodeValues(*chunk.encoded, floats->span());
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

}  // namespace

StagedVector::StagedVector(std::shared_ptr<const Layout> layout)
    : layout_(std::move(layout)), coverage_(layout_->size()) {}

absl::Status StagedVector::Add(TensorChunk chunk, Parallel* parallel) {
  const absl::Status covered = coverage_.Add(chunk.offset, chunk.size());
  if (!covered.ok()) return covered;
  if (chunk.encoded.has_value()) {
    const absl::Status decoded = Decode(chunk);
    if (!decoded.ok()) return decoded;
  }
  uint64_t offset = chunk.offset;
  for (const FloatPiece& floats : chunk.pieces) {
    const Placed piece = {offset, floats};
    // Now, while it is in the cache.
    const absl::Status finite = CheckFinite(piece, parallel);
    if (!finite.ok()) return finite;
    pieces_.push_back(piece);
    offset = piece.end();
  }
  owners_.push_back(std::move(chunk.owner));
  return absl::OkStatus();
}

absl::Status StagedVector::CheckFinite(const Placed& piece, Parallel* parallel) const {
  const absl::optional<size_t> bad = FindNotFiniteIn(piece.floats, parallel);
  if (!bad.has_value()) return absl::OkStatus();
  return MakeError(
      Reason::kNotFinite,
      absl::StrCat(layout_->ElementName(piece.offset + *bad), " is ", piece.floats[*bad].value,
                   ", expected a finite number; lower the learning rate, or look "
                   "for the batch that caused it"));
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

#include "server/aggregation/staged_vector.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/tensor/fetch_ahead.h"
#include "common/tensor/stripe_span.h"
#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// A chunk of fewer elements is copied: one slice of it may keep a buffer of gRPC's of this size.
constexpr uint64_t kFewElements = 16384;
// So is one whose pieces are smaller on average.
constexpr uint64_t kPieceElements = 256;

// Chunks that any vector may have, for each of its tensors, and one for so many elements.
constexpr uint64_t kAnyChunks = 256;
constexpr uint64_t kChunksOfTensor = 2;
constexpr uint64_t kElementsOfChunk = 256;

// Replaces pieces that keep much more memory than their elements by a copy.
void CopyIfSmall(TensorChunk& chunk) {
  const uint64_t size = chunk.size();
  if (size >= kFewElements && size >= kPieceElements * chunk.pieces.size()) return;
  CopyPieces(chunk);
}

// The elements of `decoded`, a chunk of the whole vector, that lie in the chunk's stripe.
std::shared_ptr<FloatBuffer> InStripe(const TensorChunk& chunk, absl::Span<const float> decoded) {
  const StripeSpan<const float> span(chunk.stripe->all, chunk.stripe->index, chunk.encoded->offset,
                                     decoded);
  auto floats = std::make_shared<FloatBuffer>(span.size());
  Gather(span, span.begin(), span.end(), floats->span().data());
  return floats;
}

// Replaces an encoded payload by the decoded floats. The chunk was reserved, so the size that it
// claims fits the layout, or that of the whole vector. DecodeValues() has a bound, too.
absl::Status Decode(TensorChunk& chunk, const TransformRegistry& transforms) {
  auto floats = std::make_shared<FloatBuffer>(chunk.encoded->how.count);
  const absl::Status decoded = DecodeValues(*chunk.encoded, floats->span(), transforms);
  if (!decoded.ok()) return decoded;
  if (chunk.stripe.has_value()) floats = InStripe(chunk, floats->span());
  chunk.encoded.reset();
  chunk.pieces = {AsPiece(floats->span())};
  chunk.owner = floats;
  return absl::OkStatus();
}

float LargestOf(FloatPiece floats, Parallel* parallel) {
  if (parallel == nullptr || floats.size() <= kPartElements) return LargestMagnitude(floats);
  std::vector<float> largest(PartsOf(floats.size()));
  ForParts(*parallel, floats.size(), [&](size_t part, uint64_t begin, uint64_t end) {
    largest[part] = LargestMagnitude(floats.subspan(begin, end - begin));
  });
  return *std::max_element(largest.begin(), largest.end());
}

using ElementName = absl::FunctionRef<std::string(uint64_t offset)>;

// One of `floats` was not finite. `first` is the index in the vector of the first of them.
absl::Status NotFinite(uint64_t first, FloatPiece floats, ElementName name) {
  const size_t bad = FindNotFinite(floats).value_or(0);  // absent if its sender has changed it
  return MakeError(Reason::kNotFinite,
                   absl::StrCat(name(first + bad), " is ", floats[bad].value,
                                ", expected a finite number; lower the learning rate, or look "
                                "for the batch that caused it"));
}

void Copy(FloatPiece floats, absl::Span<float> to, Parallel* parallel) {
  if (parallel == nullptr || floats.size() <= kPartElements) return CopyTo(floats, to);
  ForParts(*parallel, floats.size(), [&](size_t, uint64_t begin, uint64_t end) {
    CopyTo(floats.subspan(begin, end - begin), to.subspan(begin, end - begin));
  });
}

// Replaces the pieces by their copy in `to`, which `owner` owns.
void MovePieces(absl::Span<float> to, std::shared_ptr<const void> owner, Parallel* parallel,
                TensorChunk& chunk) {
  uint64_t begin = 0;
  for (const FloatPiece& piece : chunk.pieces) {
    Copy(piece, to.subspan(begin, piece.size()), parallel);
    begin += piece.size();
  }
  chunk.pieces = {AsPiece(to)};
  chunk.owner = std::move(owner);
}

absl::StatusOr<TensorChunk> PrepareChunk(TensorChunk chunk, ElementName name,
                                         const Staging& staging) {
  const bool encoded = chunk.encoded.has_value();
  if (encoded) {
    CHECK(staging.transforms != nullptr) << "an encoded chunk where only plain ones come";
    const absl::Status decoded = Decode(chunk, *staging.transforms);
    if (!decoded.ok()) return decoded;
  }
  if (chunk.offset < staging.memory.size() && !chunk.foreign) {
    MovePieces(staging.memory.subspan(chunk.offset, chunk.size()), nullptr, staging.parallel,
               chunk);
  } else if (!encoded) {
    CopyIfSmall(chunk);
  }
  uint64_t offset = chunk.offset;
  chunk.largest = 0;
  for (const FloatPiece& floats : chunk.pieces) {
    // The elements are in the cache, so this is the cheapest moment to check them.
    const float largest = LargestOf(floats, staging.parallel);
    if (!std::isfinite(largest)) return NotFinite(offset, floats, name);
    chunk.largest = std::max(chunk.largest, largest);
    offset += floats.size();
  }
  return chunk;
}

// Calls piece() with copies of the elements that keep the bound that they had when they were
// checked. A copy stays in the first-level cache.
void ForEachCopy(uint64_t offset, FloatPiece floats, float largest,
                 absl::FunctionRef<void(uint64_t offset, FloatPiece floats)> piece) {
  constexpr size_t kElements = 2048;
  alignas(64) float copy[kElements];
  for (size_t at = 0; at < floats.size(); at += kElements) {
    const FloatPiece part = floats.subspan(at, kElements);
    const absl::Span<float> to = absl::MakeSpan(copy, part.size());
    CopyWithin(largest, part, to);
    piece(offset + at, AsPiece(to));
  }
}

}  // namespace

void CopyPieces(TensorChunk& chunk) {
  const auto floats = std::make_shared<FloatBuffer>(chunk.size());
  MovePieces(floats->span(), floats, nullptr, chunk);
  chunk.foreign = false;
}

absl::Status StageChunk(TensorChunk chunk, absl::FunctionRef<std::string(uint64_t offset)> name,
                        const Staging& staging,
                        absl::FunctionRef<absl::Status(const TensorChunk&)> reserve,
                        absl::FunctionRef<absl::Status(absl::StatusOr<TensorChunk>)> place) {
  const absl::Status reserved = reserve(chunk);
  if (!reserved.ok()) return reserved;
  return place(PrepareChunk(std::move(chunk), name, staging));
}

uint64_t StagedVector::MostChunks(const Layout& layout) {
  return kAnyChunks + kChunksOfTensor * layout.ranges().size() + layout.size() / kElementsOfChunk;
}

StagedVector::StagedVector(std::shared_ptr<const Layout> layout,
                           std::shared_ptr<FloatBuffer> memory)
    : layout_(std::move(layout)), memory_(std::move(memory)), coverage_(layout_->size()) {}

absl::Status StagedVector::Add(TensorChunk chunk, Parallel* parallel,
                               const TransformRegistry* transforms) {
  return StageChunk(
      std::move(chunk), [this](uint64_t offset) { return layout_->ElementName(offset); },
      Staging{transforms, parallel, FloatsOf(memory_)},
      [this](const TensorChunk& arrived) { return Reserve(arrived); },
      [this](absl::StatusOr<TensorChunk> checked) {
        if (!checked.ok()) return checked.status();
        Place(*std::move(checked));
        return absl::OkStatus();
      });
}

absl::Status StagedVector::Reserve(const TensorChunk& chunk) {
  const uint64_t most = MostChunks(*layout_);
  if (chunks_ == most) {
    return MakeError(Reason::kBadChunk,
                     absl::StrCat("more than ", most, " chunks of a vector of ", layout_->size(),
                                  " elements; send more elements in a chunk"));
  }
  ++chunks_;
  return coverage_.Add(chunk.offset, chunk.size());
}

void StagedVector::Place(TensorChunk chunk) {
  largest_ = std::max(largest_, chunk.largest);
  foreign_ = foreign_ || chunk.foreign;
  uint64_t offset = chunk.offset;
  for (const FloatPiece& floats : chunk.pieces) {
    pieces_.push_back({offset, floats});
    offset += floats.size();
  }
  if (chunk.owner != nullptr) owners_.push_back(std::move(chunk.owner));
}

void StagedVector::Seal() {
  const auto before = [](const Placed& a, const Placed& b) { return a.offset < b.offset; };
  if (!std::is_sorted(pieces_.begin(), pieces_.end(), before)) {
    std::sort(pieces_.begin(), pieces_.end(), before);
  }
  sealed_ = true;
}

template <typename Piece>
void StagedVector::ForEachPlaced(uint64_t begin, uint64_t end, const Piece& piece) const {
  CHECK(sealed_);
  auto at = std::partition_point(pieces_.begin(), pieces_.end(),
                                 [begin](const Placed& placed) { return placed.end() <= begin; });
  for (; at != pieces_.end() && at->offset < end; ++at) {
    const uint64_t from = std::max(begin, at->offset);
    const uint64_t to = std::min(end, at->end());
    piece(from, at->floats.subspan(from - at->offset, to - from));
  }
}

void StagedVector::ForEachPiece(
    uint64_t begin, uint64_t end,
    absl::FunctionRef<void(uint64_t offset, FloatPiece floats)> piece) const {
  ForEachPlaced(begin, end, [&](uint64_t offset, FloatPiece floats) {
    foreign_ ? ForEachCopy(offset, floats, largest_, piece) : piece(offset, floats);
  });
}

void StagedVector::Prefetch(uint64_t begin, uint64_t end) const {
  ForEachPlaced(begin, end, [](uint64_t, FloatPiece floats) {
    FetchAhead(floats.data(), std::min<size_t>(floats.size() * sizeof(float), 1024));
  });
}

void StagedVector::CopyTo(uint64_t begin, absl::Span<float> to) const {
  ForEachPlaced(begin, begin + to.size(), [&](uint64_t offset, FloatPiece floats) {
    const absl::Span<float> part = to.subspan(offset - begin, floats.size());
    if (floats.data() == AsPiece(part).data()) return;
    foreign_ ? CopyWithin(largest_, floats, part) : sluice::CopyTo(floats, part);
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

#include "server/aggregation/accumulator.h"

#include <algorithm>

#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"

namespace sluice {
namespace {

// Calls piece(offset, floats, weight) for the addend's elements of [begin, end).
template <typename Piece>
void ForEachWeighted(const std::vector<KindRun>& runs, const Addend& addend, uint64_t begin,
                     uint64_t end, const Piece& piece) {
  const GradientWeight& weight = addend.weight;
  const auto part = [&](uint64_t from, uint64_t to, float factor) {
    addend.gradient->ForEachPiece(
        from, to, [&](uint64_t offset, FloatPiece floats) { piece(offset, floats, factor); });
  };
  if (weight.parameters == weight.statistics) {
    part(begin, end, weight.parameters);
    return;
  }
  ForEachRun(runs, begin, end, [&](RangeKind kind, uint64_t from, uint64_t to) {
    part(from, to, kind == RangeKind::kParameter ? weight.parameters : weight.statistics);
  });
}

bool IsOne(const GradientWeight& weight) {
  return weight.parameters == 1 && weight.statistics == 1;
}

// The first gradient may have arrived where the sum lies.
void Begin(FloatPiece piece, float weight, absl::Span<float> to) {
  piece.data() == AsPiece(to).data() ? Scale(weight, to) : ScaleTo(piece, weight, to);
}

void Increase(FloatPiece piece, float weight, absl::Span<float> to) {
  weight == 1 ? AddTo(piece, to) : AddScaledTo(piece, weight, to);
}

}  // namespace

void Accumulator::TakeMemory() {
  if (!sum_.empty() || size_ == 0) return;
  if (own_.size() == 0) own_ = FloatBuffer(size_);
  sum_ = own_.span();
}

void Accumulator::Add(const Addend& addend, Parallel& parallel) {
  TakeMemory();
  ForParts(parallel, sum_.size(),
           [&](size_t, uint64_t begin, uint64_t end) { AddPart(addend, begin, end); });
  bound_ = BoundWith(addend);
  ++count_;
}

void Accumulator::Load(absl::Span<const float> sum, Parallel& parallel) {
  TakeMemory();
  std::vector<float> largest(PartsOf(sum.size()));
  ForParts(parallel, sum.size(), [&](size_t part, uint64_t begin, uint64_t end) {
    const FloatPiece from = AsPiece(sum.subspan(begin, end - begin));
    CopyTo(from, sum_.subspan(begin, from.size()));
    largest[part] = LargestMagnitude(from);
  });
  count_ = 1;
  bound_ = largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
}

double Accumulator::BoundWith(const Addend& last) const {
  const double weight = std::max(last.weight.parameters, last.weight.statistics);
  return bound() + weight * last.gradient->largest();
}

void Accumulator::AddPart(const Addend& addend, uint64_t begin, uint64_t end) {
  AddOnto(addend, begin, sum_.subspan(begin, end - begin));
}

void Accumulator::SumWith(const absl::optional<Addend>& last, uint64_t begin,
                          absl::Span<float> to) const {
  if (count_ > 0) {
    CopyTo(AsPiece(sum_.subspan(begin, to.size())), to);
  } else if (!last.has_value()) {
    std::fill(to.begin(), to.end(), 0.0f);
  }
  if (last.has_value()) AddOnto(*last, begin, to);
}

void Accumulator::AddOnto(const Addend& addend, uint64_t begin, absl::Span<float> to) const {
  if (count_ == 0 && IsOne(addend.weight)) {
    addend.gradient->CopyTo(begin, to);
    return;
  }
  const uint64_t end = begin + to.size();
  ForEachWeighted(runs_, addend, begin, end, [&](uint64_t offset, FloatPiece piece, float weight) {
    const absl::Span<float> part = to.subspan(offset - begin, piece.size());
    count_ == 0 ? Begin(piece, weight, part) : Increase(piece, weight, part);
  });
}

}  // namespace sluice

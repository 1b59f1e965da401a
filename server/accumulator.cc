#include "server/accumulator.h"

#include "server/vector_math.h"

namespace sluice {

void Accumulator::Add(const StagedVector& gradient, const GradientWeight& weight) {
  for (const StagedChunk& chunk : gradient.chunks()) AddChunk(chunk, weight);
  ++count_;
}

void Accumulator::AddChunk(const StagedChunk& chunk, const GradientWeight& weight) {
  const absl::Span<const float> elements = chunk.elements();
  const absl::Span<float> to = sum_.span().subspan(chunk.offset, elements.size());
  if (weight.parameters == weight.statistics) {
    AddPiece(elements, weight.parameters, to);
    return;
  }
  const uint64_t first = chunk.offset;
  ForEachRun(runs_, first, first + elements.size(),
             [&](RangeKind kind, uint64_t begin, uint64_t end) {
               const bool parameters = kind == RangeKind::kParameter;
               AddPiece(elements.subspan(begin - first, end - begin),
                        parameters ? weight.parameters : weight.statistics,
                        to.subspan(begin - first, end - begin));
             });
}

void Accumulator::AddPiece(absl::Span<const float> piece, float weight,
                           absl::Span<float> to) const {
  if (count_ == 0) {
    weight == 1 ? CopyTo(piece, to) : ScaleTo(piece, weight, to);
  } else {
    weight == 1 ? AddTo(piece, to) : AddScaledTo(piece, weight, to);
  }
}

}  // namespace sluice

#include "server/staged_vector.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "server/vector_math.h"

namespace sluice {

absl::Span<const float> StagedChunk::elements() const {
  // The allocator, and a short string's own storage, align to 8 bytes at least.
  return absl::MakeConstSpan(reinterpret_cast<const float*>(bytes.data()),
                             bytes.size() / sizeof(float));
}

StagedVector::StagedVector(std::shared_ptr<const Layout> layout)
    : layout_(std::move(layout)), coverage_(layout_->size()) {}

absl::Status StagedVector::Add(StagedChunk chunk) {
  const absl::Span<const float> elements = chunk.elements();
  const absl::Status covered = coverage_.Add(chunk.offset, elements.size());
  if (!covered.ok()) return covered;
  const absl::optional<size_t> bad = FindNotFinite(elements);
  if (bad.has_value()) {
    return MakeError(Reason::kNotFinite,
                     absl::StrCat(layout_->ElementName(chunk.offset + *bad), " is ", elements[*bad],
                                  ", expected a finite number; lower the learning rate, or look "
                                  "for the batch that caused it"));
  }
  chunks_.push_back(std::move(chunk));
  return absl::OkStatus();
}

void StagedVector::CopyTo(absl::Span<float> to) const {
  for (const StagedChunk& chunk : chunks_) {
    const absl::Span<const float> elements = chunk.elements();
    sluice::CopyTo(elements, to.subspan(chunk.offset, elements.size()));
  }
}

double StagedVector::ParameterNorm() const {
  const std::vector<KindRun> runs = layout_->Runs();
  double squares = 0;
  for (const StagedChunk& chunk : chunks_) {
    const absl::Span<const float> elements = chunk.elements();
    ForEachRun(runs, chunk.offset, chunk.offset + elements.size(),
               [&](RangeKind kind, uint64_t begin, uint64_t end) {
                 if (kind != RangeKind::kParameter) return;
                 squares += SumOfSquares(elements.subspan(begin - chunk.offset, end - begin));
               });
  }
  return std::sqrt(squares);
}

}  // namespace sluice

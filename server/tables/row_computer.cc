#include "server/tables/row_computer.h"

#include "common/tensor/tensor_chunk.h"
#include "common/tensor/vector_math.h"

namespace sluice {

bool RowComputer::Compute(const PastRow& row, absl::Span<const float> sum, float share,
                          absl::Span<float> next) {
  RowPiece piece;
  piece.width = shape_.width();
  piece.fresh = row.record == nullptr;
  piece.sum = Mean(sum, share);
  piece.current = piece.fresh ? First(row.id) : row.record->elements();
  piece.next = next.data();
  rule_.optimizer->Apply(piece);
  return !FindNotFinite(AsPiece(next)).has_value();
}

const float* RowComputer::First(RowId id) {
  first_.resize(shape_.width());
  InitializeRow(shape_.spec.initializer, shape_.initializer_key, id, absl::MakeSpan(first_));
  return first_.data();
}

const float* RowComputer::Mean(absl::Span<const float> sum, float share) {
  if (!rule_.row_scale.has_value()) return sum.data();
  mean_.resize(shape_.width());
  DivideTo(sum, share * *rule_.row_scale, absl::MakeSpan(mean_));
  return mean_.data();
}

}  // namespace sluice

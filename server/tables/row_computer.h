// Computes rows of one table for a step, from their gradients and from what they are.

#ifndef SLUICE_SERVER_TABLES_ROW_COMPUTER_H_
#define SLUICE_SERVER_TABLES_ROW_COMPUTER_H_

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/table_spec.h"
#include "server/optimizers/row_optimizer.h"
#include "server/tables/past_rows.h"
#include "server/tables/row_shape.h"

namespace sluice {

// How the coming step computes rows. Several threads may use it.
struct RowRule {
  const RowOptimizer* optimizer = nullptr;  // its step has begun
  // If present, a row's sum is divided by its share times this before the optimizer gets it, and
  // the optimizer divides by 1.
  absl::optional<float> row_scale;
};

// One thread uses it. It needs no lock, since nobody but the maker of steps changes records.
class RowComputer {
 public:
  // Both outlive it.
  RowComputer(const RowShape& shape, const RowRule& rule) : shape_(shape), rule_(rule) {}

  // Writes the row and its slots to `next`. Returns whether they are finite. A row without a record
  // is fresh.
  bool Compute(const PastRow& row, absl::Span<const float> sum, float share,
               absl::Span<float> next);

 private:
  const float* First(RowId id);
  const float* Mean(absl::Span<const float> sum, float share);

  const RowShape& shape_;
  const RowRule& rule_;
  std::vector<float> first_;  // for the first values of a row, once there is one
  std::vector<float> mean_;   // for a sum that was divided, once there is one
};

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_ROW_COMPUTER_H_

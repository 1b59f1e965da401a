// An optimizer of single rows, whose slots lie beside them. It has the arithmetic of Optimizer, to
// the bit, and stores nothing: server/tables keeps the rows.
//
// A row that was never touched before is fresh: its slots begin as at the optimizer's first step,
// whatever the number of the step. What decays with each step of the optimizer (Adam's bias
// correction, Adagrad's lr_decay) follows the number of the step, and not the row's touches. Rows
// that a step does not touch stay as they are (lazy updates), also where the dense optimizer would
// change them: momentum moves no row, and moments and weights do not decay.

#ifndef SLUICE_SERVER_OPTIMIZERS_ROW_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ROW_OPTIMIZER_H_

#include <cstddef>
#include <memory>

#include "common/protocol/optimizer_options.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// One row. `current` and `next` have `width` elements, and then each slot has as many, in the order
// of slots(). They do not overlap.
struct RowPiece {
  size_t width = 0;
  bool fresh = false;  // then the slots of `current` are not read, and need not exist
  const float* sum = nullptr;
  const float* current = nullptr;
  float* next = nullptr;
};

// Externally synchronized, except for Apply().
class RowOptimizer {
 public:
  virtual ~RowOptimizer() = default;

  // The number of slots that the options need. A fixed number.
  virtual size_t slots() const = 0;

  // Starts a step of rows whose sums are divided by `step.divisor`. Ordered momentum is for dense
  // vectors, whose every element sees all decays: rows have their own momentum. Of changed options
  // those of group 0 hold, if there are some.
  virtual void Begin(const OptimizerStep& step, double learning_rate) = 0;

  // Computes the next row and its slots. Any number of threads may call it.
  virtual void Apply(const RowPiece& piece) const = 0;
};

// Makes one for rows. `options` are valid, and neither LAMB's nor those of averaging.
std::unique_ptr<RowOptimizer> MakeRowOptimizer(const OptimizerOptions& options);

// As MakeOptimizerOf().
template <typename Options>
std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const Options& options);

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ROW_OPTIMIZER_H_

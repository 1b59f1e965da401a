// StepRule for rows with their slots beside them. Only the files of the optimizers' arithmetic
// include this, and instantiate MakeRowOptimizerOf().

#ifndef SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_ROWS_H_
#define SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "common/protocol/optimizer_options.h"
#include "server/optimizers/elementwise_optimizer.h"
#include "server/optimizers/row_optimizer.h"

namespace sluice {

template <typename Options>
class ElementwiseRows final : public RowOptimizer {
 public:
  explicit ElementwiseRows(const Options& options) : options_(options) {
    const std::vector<SlotInfo> infos = options.slots();
    for (size_t i = 0; i < infos.size(); ++i) {
      if (infos[i].needed) needed_.push_back(i);
    }
  }

  size_t slots() const override { return needed_.size(); }

  void Begin(const OptimizerStep& step, double learning_rate) override {
    OptimizerStep of_rows = step;
    of_rows.ordered.reset();
    of_rows.momentum_divisor = 1;
    of_rows.fresh = true;
    const Options& options = CurrentOptions(step, 0, options_);
    fresh_.emplace(options, of_rows, learning_rate);
    of_rows.fresh = false;
    later_.emplace(options, of_rows, learning_rate);
  }

  void Apply(const RowPiece& piece) const override {
    StepArrays arrays = {piece.width, piece.sum, piece.current, piece.next, {}};
    float* const slots = piece.next + piece.width;
    const size_t floats = piece.width * needed_.size();
    if (piece.fresh) {
      std::fill_n(slots, floats, 0.0f);
    } else {
      std::copy_n(piece.current + piece.width, floats, slots);
    }
    for (size_t i = 0; i < needed_.size(); ++i) {
      arrays.slots.at(needed_[i]) = slots + i * piece.width;
    }
    (piece.fresh ? fresh_ : later_)->Apply(arrays);
  }

 private:
  const Options options_;
  std::vector<size_t> needed_;  // of Options::slots()
  absl::optional<StepRule<Options>> fresh_, later_;
};

template <typename Options>
std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const Options& options) {
  return std::make_unique<ElementwiseRows<Options>>(options);
}

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_ROWS_H_

// The part that is alike in all optimizers: groups, slots and their memory.
//
// Only the files of the optimizers' arithmetic include this. Each of them defines StepRule for its
// options and then instantiates MakeOptimizerOf(); README.md in this folder has an example.

#ifndef SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "common/tensor/float_buffer.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// One piece of the vector, as raw pointers for the loops of StepRule. Its gradient is `sum` divided
// by OptimizerStep::divisor.
struct StepArrays {
  size_t count;
  const float* sum;
  const float* current;
  float* next;
  std::array<float*, 4> slots;  // in the order of Options::slots(); null if no group needs it
};

// The arithmetic of one step for one group of parameters:
//   StepRule(const Options& options, const OptimizerStep& step, double learning_rate);
//   void Apply(const StepArrays& arrays) const;   // from several threads
template <typename Options>
class StepRule;

template <typename Options>
class ElementwiseOptimizer final : public Optimizer {
 public:
  ElementwiseOptimizer(std::vector<Options> groups, uint64_t size) : groups_(std::move(groups)) {
    slots_.resize(groups_.front().slots().size());
    for (const Options& group : groups_) {
      const std::vector<SlotInfo> infos = group.slots();
      for (size_t i = 0; i < slots_.size(); ++i) {
        slots_[i].name = infos[i].name;
        const bool missing = infos[i].needed && slots_[i].values.size() == 0;
        if (missing) slots_[i].values = FloatBuffer::Zeroed(size);
      }
    }
  }

  void Begin(const OptimizerStep& step) override {
    rules_.clear();
    for (size_t i = 0; i < groups_.size(); ++i) {
      rules_.emplace_back(groups_[i], step, step.learning_rates[i]);
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    StepArrays arrays = {
        piece.next.size(), piece.sum.data(), piece.current.data(), piece.next.data(), {}};
    for (size_t i = 0; i < slots_.size(); ++i) {
      arrays.slots.at(i) = slots_[i].values.from(piece.begin);
    }
    rules_[piece.group].Apply(arrays);
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> present;
    for (Slot& slot : slots_) {
      if (slot.values.size() > 0) present.push_back({slot.name, slot.values.span()});
    }
    return present;
  }

 private:
  struct Slot {
    const char* name = "";
    FloatBuffer values;  // empty if no group needs it
  };

  const std::vector<Options> groups_;
  std::vector<Slot> slots_;
  std::vector<StepRule<Options>> rules_;  // of each group, for the current step
};

template <typename Options>
std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<Options> groups, uint64_t size) {
  return std::make_unique<ElementwiseOptimizer<Options>>(std::move(groups), size);
}

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_

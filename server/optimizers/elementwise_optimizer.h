// The part that is alike in all optimizers: groups, slots and their memory.
//
// Only the files of the optimizers' arithmetic include this. Each of them defines StepRule for its
// options and then instantiates MakeOptimizerOf(); README.md in this folder has an example.

#ifndef SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_math.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// One piece of the vector, as raw pointers for the loops of StepRule. Its gradient is `sum` divided
// by OptimizerStep::divisor.
struct StepArrays {
  size_t count;
  const float* sum;
  const float* current;
  float* next;
  // In the order of Options::slots(); null if no group needs it.
  std::array<float*, kMostSlots> slots;
};

// The arithmetic of one step for one group of parameters:
//   StepRule(const Options& options, const OptimizerStep& step, double learning_rate);
//   void Apply(const StepArrays& arrays) const;   // from several threads
//   Magnitudes After(const Magnitudes& before) const;   // may be left out; without rounding
template <typename Options>
class StepRule;

// The options of that group in this step; `first` are those of the config.
template <typename Options>
const Options& CurrentOptions(const OptimizerStep& step, uint32_t group, const Options& first) {
  if (step.changed == nullptr) return first;
  const auto changed = step.changed->groups().find(group);
  return changed == step.changed->groups().end() ? first : std::get<Options>(changed->second);
}

template <typename Rule, typename = void>
struct HasAfter : std::false_type {};
template <typename Rule>
struct HasAfter<Rule, std::void_t<decltype(std::declval<Rule>().After(Magnitudes()))>>
    : std::true_type {};

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
      rules_.emplace_back(CurrentOptions(step, static_cast<uint32_t>(i), groups_[i]), step,
                          step.learning_rates[i]);
    }
  }

  absl::optional<Magnitudes> After(const Magnitudes& before) const override {
    if constexpr (HasAfter<StepRule<Options>>::value) {
      Magnitudes most;
      for (const StepRule<Options>& rule : rules_) {
        const Magnitudes after = rule.After(before);
        Raise(after.gradient, most.gradient);
        Raise(after.parameters, most.parameters);
        for (size_t i = 0; i < kMostSlots; ++i) Raise(after.slots[i], most.slots[i]);
      }
      return most;
    } else {
      return absl::nullopt;
    }
  }

  void Apply(const OptimizerPiece& piece) override {
    StepArrays arrays = ArraysOf(piece, 0, piece.next.size());
    for (size_t i = 0; i < slots_.size(); ++i) {
      arrays.slots.at(i) = slots_[i].values.from(piece.begin);
    }
    rules_[piece.group].Apply(arrays);
  }

  absl::optional<uint64_t> Try(const OptimizerPiece& piece) override {
    for (size_t at = 0; at < piece.next.size(); at += kBlock) {
      StepArrays arrays = ArraysOf(piece, at, std::min(kBlock, piece.next.size() - at));
      const absl::optional<uint64_t> bad = TryBlock(piece.group, piece.begin + at, arrays);
      if (bad.has_value()) return bad;
    }
    return absl::nullopt;
  }

  std::vector<OptimizerSlot> slots() override {
    std::vector<OptimizerSlot> present;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (slot.values.size() > 0) present.push_back({slot.name, slot.values.span(), i});
    }
    return present;
  }

 private:
  // Elements whose slots are copied at once. The copies stay in the first-level cache.
  static constexpr size_t kBlock = 2048;
  // More than what rounding adds to a result, and what is lost below the smallest float.
  static constexpr double kRounding = 1 + 1e-6;
  static constexpr double kLost = 1e-37;

  struct Slot {
    const char* name = "";
    FloatBuffer values;  // empty if no group needs it
  };

  // NaN stays NaN.
  static void Raise(double exact, double& bound) {
    const double rounded = exact * kRounding + kLost;
    if (!(rounded <= bound)) bound = std::isnan(bound) ? bound : rounded;
  }

  static StepArrays ArraysOf(const OptimizerPiece& piece, size_t at, size_t count) {
    return {count, piece.sum.data() + at, piece.current.data() + at, piece.next.data() + at, {}};
  }

  absl::optional<uint64_t> TryBlock(size_t group, uint64_t begin, StepArrays& arrays) {
    alignas(64) std::array<std::array<float, kBlock>, kMostSlots> copies;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const float* const values = slots_[i].values.from(begin);
      if (values == nullptr) continue;
      arrays.slots.at(i) = copies.at(i).data();
      std::copy_n(values, arrays.count, arrays.slots.at(i));
    }
    rules_[group].Apply(arrays);
    absl::optional<uint64_t> first;
    for (float* const slot : arrays.slots) {
      if (slot == nullptr) continue;
      const absl::optional<size_t> bad = FindNotFinite(AsPiece({slot, arrays.count}));
      if (bad.has_value()) first = std::min(first.value_or(begin + *bad), begin + *bad);
    }
    return first;
  }

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

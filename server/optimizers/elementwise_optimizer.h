// The part that is alike in all optimizers: groups, slots and their memory.
//
// Only the files of the optimizers' arithmetic include this. Each of them defines StepRule for its
// options and then instantiates MakeOptimizerOf(); README.md in this folder has an example.

#ifndef SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/vector_copy.h"
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
  // In the order of Options::slots(); null if the group does not need it. A rule reads the slots
  // and writes every element of the new slots.
  std::array<const float*, 4> slots;
  std::array<float*, 4> new_slots;
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
        slots_[i].needed.push_back(infos[i].needed);
        const bool missing = infos[i].needed && slots_[i].values.size() == 0;
        if (!missing) continue;
        slots_[i].values = FloatBuffer::Zeroed(size);
        slots_[i].made = FloatBuffer::Zeroed(size);
      }
    }
  }

  void Begin(const OptimizerStep& step) override {
    streams_ = !step.reads_slots;
    rules_.clear();
    for (size_t i = 0; i < groups_.size(); ++i) {
      rules_.emplace_back(groups_[i], step, step.learning_rates[i]);
    }
  }

  absl::optional<uint64_t> Apply(const OptimizerPiece& piece) override {
    absl::optional<uint64_t> bad;
    for (size_t at = 0; at < piece.next.size() && !bad.has_value(); at += kBlock) {
      const size_t count = std::min(kBlock, piece.next.size() - at);
      StepArrays arrays = {
          count, piece.sum.data() + at, piece.current.data() + at, piece.next.data() + at, {}, {}};
      bad = ApplyBlock(piece.group, piece.begin + at, arrays);
    }
    return bad;
  }

  void Commit() override {
    for (Slot& slot : slots_) std::swap(slot.values, slot.made);
  }

  std::vector<OptimizerSlot> slots() override { return Spans(&Slot::values); }
  std::vector<OptimizerSlot> new_slots() override { return Spans(&Slot::made); }

 private:
  // Elements that stay in the first-level cache while they are checked and written past it.
  static constexpr size_t kBlock = 2048;

  // Elements of groups that do not need the slot are 0 in both buffers.
  struct Slot {
    const char* name = "";
    std::vector<bool> needed;  // by each group
    FloatBuffer values;        // empty if no group needs it
    FloatBuffer made;          // by the step under way
  };

  std::vector<OptimizerSlot> Spans(FloatBuffer Slot::*buffer) {
    std::vector<OptimizerSlot> present;
    for (Slot& slot : slots_) {
      if (slot.values.size() > 0) present.push_back({slot.name, (slot.*buffer).span()});
    }
    return present;
  }

  // New slots of a large vector are written past the caches, as the parameters are, unless the
  // caller reads them. So each element is read from memory once and written once. A vector that
  // fits into the caches pays for the second buffer and the check: with 100,000 elements Adam
  // takes 1.35 times as long, and momentum 1.7 times.
  absl::optional<uint64_t> ApplyBlock(size_t group, uint64_t begin, StepArrays& arrays) {
    alignas(64) float block[std::tuple_size<decltype(arrays.slots)>::value][kBlock];
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.needed[group]) continue;
      arrays.slots.at(i) = slot.values.from(begin);
      arrays.new_slots.at(i) = Streams(slot) ? block[i] : slot.made.from(begin);
    }
    rules_[group].Apply(arrays);
    absl::optional<uint64_t> first;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.needed[group]) continue;
      const FloatPiece made = AsPiece({arrays.new_slots.at(i), arrays.count});
      const absl::optional<size_t> bad = FindNotFinite(made);
      if (bad.has_value()) first = std::min(first.value_or(begin + *bad), begin + *bad);
      if (Streams(slot)) StreamTo(made, slot.made.span().subspan(begin, arrays.count));
    }
    return first;
  }

  bool Streams(const Slot& slot) const { return streams_ && slot.made.size() >= kStreamedElements; }

  const std::vector<Options> groups_;
  std::vector<Slot> slots_;
  std::vector<StepRule<Options>> rules_;  // of each group, for the current step
  bool streams_ = true;                   // in the current step
};

template <typename Options>
std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<Options> groups, uint64_t size) {
  return std::make_unique<ElementwiseOptimizer<Options>>(std::move(groups), size);
}

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_ELEMENTWISE_OPTIMIZER_H_

#include "server/optimizers/whole_optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/vector_math.h"
#include "server/optimizers/row_optimizer.h"

namespace sluice {
namespace {

// Of a server whose program has none. No worker can join there; it is here for the table of
// optimizers.
class NoOptimizer final : public ProgramOptimizer {
 public:
  uint64_t state_size() const override { return 0; }
  absl::Status Step(const ProgramStep& /*step*/) override {
    return absl::FailedPreconditionError("the server's program has no optimizer");
  }
};

// Of a program's optimizer with so much state.
uint64_t CountSlots(uint64_t state_size, uint64_t size) {
  return size == 0 ? 0 : (state_size + size - 1) / size;
}

}  // namespace

WholeOptimizer::WholeOptimizer(std::unique_ptr<ProgramOptimizer> program, uint64_t size)
    : program_(std::move(program)),
      parameters_(size),
      gradient_(size),
      state_(FloatBuffer::Zeroed(CountSlots(program_->state_size(), size) * size)),
      slots_(FloatBuffer::Zeroed(state_.size())) {
  for (uint64_t i = 0; i < CountSlots(program_->state_size(), size); ++i) {
    names_.push_back(absl::StrCat("state_", i));
  }
}

absl::Status WholeOptimizer::Step() {
  std::copy_n(slots_.span().data(), slots_.size(), state_.span().data());
  ProgramStep step;
  step.number = step_.number;
  step.learning_rates = step_.learning_rates;
  step.parameters = parameters_.span();
  step.gradient = gradient_.span();
  step.state = state_.span().first(program_->state_size());
  const absl::Status made = program_->Step(step);
  if (!made.ok()) return made;
  const absl::optional<size_t> bad = FindNotFinite(AsPiece(state_.span()));
  if (!bad.has_value()) return absl::OkStatus();
  return MakeError(Reason::kNotFinite,
                   absl::StrCat("its state has ", state_.span()[*bad], " at ", *bad));
}

void WholeOptimizer::Commit() {
  std::copy_n(state_.span().data(), state_.size(), slots_.span().data());
}

void WholeOptimizer::Apply(const OptimizerPiece& piece) {
  std::copy_n(parameters_.from(piece.begin), piece.next.size(), piece.next.data());
}

absl::optional<uint64_t> WholeOptimizer::Try(const OptimizerPiece& piece) {
  Apply(piece);
  return absl::nullopt;
}

std::vector<OptimizerSlot> WholeOptimizer::slots() {
  std::vector<OptimizerSlot> slots;
  const size_t size = parameters_.size();
  for (size_t i = 0; i < names_.size(); ++i) {
    slots.push_back({names_[i].c_str(), slots_.span().subspan(i * size, size), i});
  }
  return slots;
}

template <>
std::unique_ptr<Optimizer> MakeOptimizerOf(std::vector<ProgramOptions> /*groups*/, uint64_t size) {
  return std::make_unique<WholeOptimizer>(std::make_unique<NoOptimizer>(), size);
}

// CheckFits() lets no table have it.
template <>
std::unique_ptr<RowOptimizer> MakeRowOptimizerOf(const ProgramOptions& /*options*/) {
  return nullptr;
}

}  // namespace sluice

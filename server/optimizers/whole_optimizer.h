// Lets an optimizer of the program (program_optimizer.h) step where Sluice's own do. It makes a
// step on the whole vector at once, in memory of its own, before the step's pass over the vector.
// Its state becomes slots.
//
// CheckedOptimizer owns one.

#ifndef SLUICE_SERVER_OPTIMIZERS_WHOLE_OPTIMIZER_H_
#define SLUICE_SERVER_OPTIMIZERS_WHOLE_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/protocol/program_optimizer.h"
#include "common/tensor/float_buffer.h"
#include "server/optimizers/optimizer.h"

namespace sluice {

// Step() comes after Begin(), and Commit() before Apply(). It holds two vectors, and the state
// twice.
class WholeOptimizer final : public Optimizer {
 public:
  WholeOptimizer(std::unique_ptr<ProgramOptimizer> program, uint64_t size);

  void Begin(const OptimizerStep& step) override { step_ = step; }

  // Where the step's mean gradient and the current parameters are to be written.
  absl::Span<float> gradient() { return gradient_.span(); }
  absl::Span<float> parameters() { return parameters_.span(); }
  // Makes the step, from those and the slots. The slots stay as they are. NOT_FINITE if a number of
  // the state would not be finite; the program's errors.
  absl::Status Step();
  // The slots become those of the step that was made.
  void Commit();

  absl::optional<Magnitudes> After(const Magnitudes&) const override { return absl::nullopt; }
  // Both copy the parameters of the step that was made.
  void Apply(const OptimizerPiece& piece) override;
  absl::optional<uint64_t> Try(const OptimizerPiece& piece) override;

  // "state_0", "state_1", …: as many as hold the state. The last one ends with zeros.
  std::vector<OptimizerSlot> slots() override;

 private:
  const std::unique_ptr<ProgramOptimizer> program_;
  OptimizerStep step_;
  FloatBuffer parameters_;
  FloatBuffer gradient_;
  FloatBuffer state_;  // of the step that is made; the slots are of the one before
  FloatBuffer slots_;
  std::vector<std::string> names_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPTIMIZERS_WHOLE_OPTIMIZER_H_

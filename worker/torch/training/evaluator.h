// Evaluates a model for programs that do not use LibTorch themselves: the program writes the
// parameters, and of a model with tables the rows that its test needs. It gets loss and metrics.

#ifndef SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_
#define SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_memory.h"
#include "worker/client/constant_memory.h"
#include "worker/torch/training/model_choice.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Used by one thread.
class Evaluator {
 public:
  // `choice` has the data of the test. INVALID_ARGUMENT if MakeTrainedModel() refuses it. `threads`
  // is the number of LibTorch's threads.
  static absl::StatusOr<Evaluator> Make(const ModelChoice& choice, int threads);

  Evaluator(Evaluator&&) noexcept;
  ~Evaluator();

  // The model's layout. An observer joins with it, so it must equal the layout of the job.
  const Layout& layout() const;
  // The memory of the layout's constants. Call TakeConstants() after writing to it.
  ConstantMemory constants() const;
  void TakeConstants();

  // The model's parameters and statistics. Write them and the rows, then call Measure().
  absl::Span<float> values();

  // The rows of tables that the test needs, in ascending order, and memory for them, one after the
  // other. None if the model has no tables.
  const std::vector<RowIds>& wanted_rows() const;
  absl::Span<float> rows();
  // Writes the first values of all of them, or one row, which does nothing if it is not wanted.
  void SetFirstRows();
  void SetRow(uint32_t table, RowId id, absl::Span<const float> row);

  // Sets the values from a file; see LoadStateDict(). A model with tables needs rows, too.
  absl::Status Load(const std::string& path);

  // Join with this memory (JoinRequest::memory): a server that can open it knows that this process
  // runs on its node, and then shares its parameters in memory. Null if there is none.
  const std::shared_ptr<const SharedMemory>& memory() const;

  // Tests the values. `listener` may be null.
  absl::StatusOr<TestResult> Measure(const EvaluationListener& listener = nullptr);

 private:
  struct State;
  explicit Evaluator(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_

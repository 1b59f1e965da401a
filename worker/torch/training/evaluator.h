// Evaluates a model for programs that do not use LibTorch themselves: the program writes the
// parameters, and gets loss and accuracy.

#ifndef SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_
#define SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/shared_memory.h"
#include "worker/data/dataset.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Used by one thread.
class Evaluator {
 public:
  // `model` and `form` are arguments of MakeModel() (worker/torch/models/models.h);
  // INVALID_ARGUMENT if it refuses them. `threads` is the number of LibTorch's threads.
  static absl::StatusOr<Evaluator> Make(const std::string& model, const SampleForm& form,
                                        int threads);

  Evaluator(Evaluator&&) noexcept;
  ~Evaluator();

  // The model's layout. An observer joins with it, so it must equal the layout of the job.
  const Layout& layout() const;

  // The model's parameters and statistics. Write them, then call Measure().
  absl::Span<float> values();

  // Sets the values from a file; see LoadStateDict().
  absl::Status Load(const std::string& path);

  // Join with this memory (JoinRequest::memory): a server that can open it knows that this process
  // runs on its node, and then shares its parameters in memory. Null if there is none.
  const std::shared_ptr<const SharedMemory>& memory() const;

  // Evaluates the values on `data`, which must not be empty. `listener` may be null.
  absl::StatusOr<Evaluation> Measure(const Dataset& data,
                                     const EvaluationListener& listener = nullptr);

 private:
  struct State;
  explicit Evaluator(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_

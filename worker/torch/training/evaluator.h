// A model to be evaluated, for programs that know nothing of LibTorch: parameters in, figures out.

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

// For one thread.
class Evaluator {
 public:
  // Of a model that MakeModel() knows (worker/torch/models/models.h). `threads` are LibTorch's.
  static absl::StatusOr<Evaluator> Make(const std::string& model, int threads);

  Evaluator(Evaluator&&) noexcept;
  ~Evaluator();

  // The job's must be the same.
  const Layout& layout() const;

  // The model's parameters and statistics, to be written: what Measure() evaluates.
  absl::Span<float> values();

  // Sets them to those of a file, as LoadStateDict() reads it.
  absl::Status Load(const std::string& path);

  // For servers of this node to know that it is on theirs, as FlatModel::gradient_memory().
  const std::shared_ptr<const SharedMemory>& memory() const;

  // `data` are not empty.
  absl::StatusOr<Evaluation> Measure(const Dataset& data);

 private:
  struct State;
  explicit Evaluator(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TRAINING_EVALUATOR_H_

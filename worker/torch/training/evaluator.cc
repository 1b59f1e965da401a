#include "worker/torch/training/evaluator.h"

#include <utility>

#include "worker/torch/flat_model.h"
#include "worker/torch/guarded.h"
#include "worker/torch/models/models.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/threads.h"
#include "worker/torch/training/evaluate.h"

namespace sluice {

struct Evaluator::State {
  State(const std::string& name, const SampleForm& form)
      : model(MakeModel(name, form)), flat(*model) {}

  const std::shared_ptr<Classifier> model;
  FlatModel flat;
};

Evaluator::Evaluator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator::~Evaluator() = default;

absl::StatusOr<Evaluator> Evaluator::Make(const std::string& model, const SampleForm& form,
                                          int threads) {
  return Guarded([&] {
    SetThreads(threads);
    return Evaluator(std::make_unique<State>(model, form));
  });
}

const Layout& Evaluator::layout() const { return state_->flat.layout(); }

absl::Span<float> Evaluator::values() { return state_->flat.values(); }

const std::shared_ptr<const SharedMemory>& Evaluator::memory() const {
  return state_->flat.gradient_memory();
}

absl::Status Evaluator::Load(const std::string& path) {
  const absl::Status loaded = LoadStateDict(path, *state_->model);
  if (loaded.ok()) state_->flat.GatherValues();
  return loaded;
}

absl::StatusOr<Evaluation> Evaluator::Measure(const Dataset& data,
                                              const EvaluationListener& listener) {
  return Guarded([&] {
    state_->flat.ScatterValues();
    return Evaluate(*state_->model, data, listener);
  });
}

}  // namespace sluice

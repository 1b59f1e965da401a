#include "worker/torch/training/evaluator.h"

#include <utility>

#include "worker/torch/flat_model.h"
#include "worker/torch/guarded.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/threads.h"
#include "worker/torch/training/gathered_rows.h"
#include "worker/torch/training/trained_model.h"

namespace sluice {

struct Evaluator::State {
  explicit State(const ModelChoice& choice)
      : model(MakeTrainedModel(choice, RowsAre::kOnServers)),
        flat(model->module()),
        rows(std::make_shared<GatheredRows>(flat.layout().tables())) {
    for (uint32_t table = 0; table < flat.embeddings().size(); ++table) {
      flat.embeddings()[table].module->Bind(table, rows);
    }
    // A test on zeroes tells which rows a test needs.
    if (!flat.embeddings().empty()) model->Test(nullptr);
    rows->EndNotes();
  }

  const std::unique_ptr<TrainedModel> model;
  FlatModel flat;
  const std::shared_ptr<GatheredRows> rows;
};

Evaluator::Evaluator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator::~Evaluator() = default;

absl::StatusOr<Evaluator> Evaluator::Make(const ModelChoice& choice, int threads) {
  return Guarded([&] {
    SetThreads(threads);
    return Evaluator(std::make_unique<State>(choice));
  });
}

ConstantMemory Evaluator::constants() const { return state_->flat.constants(); }

void Evaluator::TakeConstants() { state_->flat.ScatterConstants(); }

const Layout& Evaluator::layout() const { return state_->flat.layout(); }

absl::Span<float> Evaluator::values() { return state_->flat.values(); }

const std::vector<RowIds>& Evaluator::wanted_rows() const { return state_->rows->wanted(); }

absl::Span<float> Evaluator::rows() { return state_->rows->values(); }

void Evaluator::SetFirstRows() { state_->rows->SetFirst(); }

void Evaluator::SetRow(uint32_t table, RowId id, absl::Span<const float> row) {
  state_->rows->Set(table, id, row);
}

const std::shared_ptr<const SharedMemory>& Evaluator::memory() const {
  return state_->flat.gradient_memory();
}

absl::Status Evaluator::Load(const std::string& path) {
  const absl::Status loaded = LoadStateDict(path, state_->model->module());
  if (loaded.ok()) state_->flat.GatherValues();
  return loaded;
}

absl::StatusOr<TestResult> Evaluator::Measure(const EvaluationListener& listener) {
  return Guarded([&] {
    state_->flat.ScatterValues();
    return state_->model->Test(listener);
  });
}

}  // namespace sluice

#include "tools/bench/lookups/stored_rows.h"

#include <utility>

#include "glog/logging.h"

namespace sluice::bench {
namespace {

std::shared_ptr<const Layout> LayoutWith(uint32_t width) {
  LayoutRange bias;
  bias.name = "bias";
  bias.shape = {1};
  bias.length = 1;
  TableSpec table;
  table.name = "rows";
  table.width = width;
  return std::make_shared<const Layout>(*Layout::Create({bias}, {table}));
}

}  // namespace

StoredRows::StoredRows(uint32_t width, const OptimizerOptions& optimizer)
    : layout_(LayoutWith(width)),
      tables_(layout_, OptimizerConfig{optimizer}, RowPlace{0, 1}, TableMemory(), one_thread_),
      latest_(tables_.Start(sluice::Step(0), 0)) {}

std::unique_ptr<StagedRows> StoredRows::Arrived(
    const std::vector<uint64_t>& ids, std::shared_ptr<const std::vector<float>> gradients) const {
  const uint32_t width = layout_->tables()[0].width;
  const size_t elements = ids.size() * width;
  CHECK_LE(elements, gradients->size());
  auto push = std::make_unique<StagedRows>(layout_, RowBytes(ids.size(), width));
  CHECK(push->AddIds({0, ids}).ok());
  TensorChunk chunk;
  chunk.pieces = {AsPiece(absl::MakeConstSpan(*gradients).first(elements))};
  chunk.owner = std::move(gradients);
  chunk.largest = 1;
  CHECK(push->Reserve(chunk).ok());
  push->Place(std::move(chunk));
  push->Seal();
  return push;
}

void StoredRows::Step(const StagedRows& push) {
  tables_.Add(push, 1, 1);
  RowStep step;
  step.optimizer.learning_rates = {0.01};
  CHECK(!tables_.Prepare(step).has_value());
  latest_ = tables_.Make(sluice::Step(++step_));
  tables_.Clear();
}

}  // namespace sluice::bench

#include "server/holder/model_executor.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"

namespace sluice {
namespace {

// Steps of models without tables keep the checksum of the vector alone.
uint64_t Joined(uint64_t of_vector, uint64_t of_rows) {
  return Checksum(LittleEndian64(of_vector) + LittleEndian64(of_rows));
}

}  // namespace

ModelExecutor::ModelExecutor(std::shared_ptr<const Layout> layout, const OptimizerConfig& optimizer,
                             const Stripes& stripes, uint32_t stripe, uint64_t most_table_bytes,
                             Parallel& parallel)
    : stripe_(*layout, optimizer, stripes, stripe, parallel) {
  if (layout->tables().empty()) return;
  tables_ = std::make_shared<RowTables>(
      std::move(layout), optimizer, RowPlace{stripe, stripes.count()}, most_table_bytes, parallel);
}

absl::Status ModelExecutor::StartRows(const SavedRows* rows, uint64_t row_steps, Snapshot& first) {
  if (tables_ == nullptr) return absl::OkStatus();
  if (rows != nullptr) {
    const absl::Status loaded =
        rows->ForEach([this](uint32_t table, const StoredRow& row) { tables_->Load(table, row); });
    if (!loaded.ok()) return loaded;
  }
  first.rows = tables_->Start(first.step, row_steps);
  return absl::OkStatus();
}

void ModelExecutor::Add(const PendingPush& push, const GradientWeight& weight) {
  stripe_.Add({&push.gradient(), weight});
  if (tables_ != nullptr) tables_->Add(push.rows(), weight.parameters, weight.share);
}

void ModelExecutor::Keep(const PendingPush& push, const GradientWeight& weight) {
  stripe_.Keep({&push.gradient(), weight});
  if (tables_ != nullptr) tables_->Add(push.rows(), weight.parameters, weight.share);
}

void ModelExecutor::Load(absl::Span<const float> sum, absl::Span<const TableSums> rows) {
  stripe_.Load(sum);
  if (tables_ != nullptr) tables_->Load(rows);
}

StripeReport ModelExecutor::Carry(const StepOrder& order, const SnapshotPair& step,
                                  const WriteProgress& progress, uint64_t* checksum) {
  const absl::Span<float> next =
      step.next == nullptr ? absl::Span<float>() : step.next->values.span();
  StripeReport report =
      stripe_.Carry(order, {step.current->values.span(), next, progress, checksum});
  if (tables_ != nullptr) CarryOnRows(order, step.next.get(), checksum, &report);
  return report;
}

void ModelExecutor::CarryOnRows(const StepOrder& order, Snapshot* next, uint64_t* checksum,
                                StripeReport* report) {
  uint64_t of_rows = 0;
  switch (order.kind) {
    case StepOrder::Kind::kMeasureSum:
      report->row_squares = tables_->SquaresOfSums(order.optimizer.divisor);
      break;
    case StepOrder::Kind::kPrepare:
      report->bad_row = tables_->Prepare({order.optimizer, order.row_scale});
      break;
    case StepOrder::Kind::kMake:
      next->rows = tables_->Make(next->step, checksum == nullptr ? nullptr : &of_rows);
      if (checksum != nullptr) *checksum = Joined(*checksum, of_rows);
      break;
    case StepOrder::Kind::kCopy:
      next->rows = tables_->Copy(next->step);
      break;
    case StepOrder::Kind::kSample:
    case StepOrder::Kind::kScale:
    case StepOrder::Kind::kDigest:
      break;
  }
}

void ModelExecutor::Clear() {
  stripe_.Clear();
  if (tables_ != nullptr) tables_->Clear();
}

std::vector<TableSums> ModelExecutor::row_sums() const {
  return tables_ == nullptr ? std::vector<TableSums>() : tables_->sums();
}

}  // namespace sluice

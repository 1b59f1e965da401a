#include "server/replica/model_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "server/optimizers/optimizer.h"

namespace sluice {
namespace {

// Steps of models without tables keep the checksum of the vector alone.
uint64_t Joined(uint64_t of_vector, uint64_t of_rows) {
  return Checksum(LittleEndian64(of_vector) + LittleEndian64(of_rows));
}

// For each table, the names of its rows' slots, in the order of Optimizer::slots().
std::vector<std::vector<std::string>> RowSlotNames(const OptimizerConfig& config,
                                                   const Layout& layout) {
  std::vector<std::vector<std::string>> names;
  for (const TableSpec& table : layout.tables()) {
    names.emplace_back();
    const auto optimizer = MakeOptimizer({OptionsFor(config, table.name)}, table.width);
    for (const OptimizerSlot& slot : optimizer->slots()) names.back().emplace_back(slot.name);
  }
  return names;
}

}  // namespace

ModelExecutor::ModelExecutor(std::shared_ptr<const Layout> layout, const OptimizerConfig& optimizer,
                             const Stripes& stripes, uint32_t stripe,
                             const TableMemory& table_memory, Parallel& parallel,
                             std::unique_ptr<ProgramOptimizer> program)
    : layout_(std::move(layout)),
      row_slots_(RowSlotNames(optimizer, *layout_)),
      stripe_(*layout_, optimizer, stripes, stripe, parallel, std::move(program)) {
  if (layout_->tables().empty()) return;
  tables_ = std::make_shared<RowTables>(layout_, optimizer, RowPlace{stripe, stripes.count()},
                                        table_memory, parallel);
}

absl::Status ModelExecutor::StartRows(const SavedRows* rows, uint64_t row_steps, Snapshot& first) {
  if (tables_ == nullptr) return absl::OkStatus();
  if (rows != nullptr) {
    const absl::Status loaded = LoadRows(*rows);
    if (!loaded.ok()) return loaded;
  }
  first.rows = tables_->Start(first.step, row_steps);
  return absl::OkStatus();
}

absl::Status ModelExecutor::LoadRows(const SavedRows& rows) {
  absl::Status fits;
  const absl::Status read = rows.ForEach([&](uint32_t table, const StoredRow& row) {
    const size_t size = layout_->tables()[table].width * (1 + row_slots_[table].size());
    if (row.touches == 0 && row.elements.size() != size) {
      fits = absl::DataLossError(
          absl::StrCat("row ", row.id, " of table ", layout_->tables()[table].name, " has ",
                       row.elements.size(), " elements in the checkpoint, expected ", size,
                       "; was it written with another optimizer?"));
    } else {
      tables_->Load(table, row);
    }
  });
  return read.ok() ? fits : read;
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
      report->row_squares = tables_->SquaresOfSums(
          order.row_scale.has_value() ? absl::make_optional(order.optimizer.divisor)
                                      : absl::nullopt);
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

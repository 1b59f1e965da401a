#include "server/replica/report_check.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/stripes.h"
#include "server/aggregation/parameter_sample.h"

namespace sluice {
namespace {

// The parts for which TrustRatios measures squares.
size_t UpdatesOf(const Layout& stripe, uint64_t unit) {
  size_t parts = 0;
  for (const LayoutRange& range : stripe.ranges()) {
    if (range.kind != RangeKind::kParameter) continue;
    ForEachUnit(unit, range.offset, range.end(), [&parts](uint64_t, uint64_t) { ++parts; });
  }
  return parts;
}

absl::Status BadReport(absl::string_view what) {
  return MakeError(Reason::kBadArgument, absl::StrCat("the replica reports ", what));
}

absl::Status CheckSize(absl::string_view field, size_t found, size_t expected) {
  if (found == expected) return absl::OkStatus();
  return BadReport(absl::StrCat(found, " ", field, ", expected ", expected));
}

absl::Status CheckTable(const BadRow& row, size_t tables) {
  if (row.table < tables) return absl::OkStatus();
  return BadReport(absl::StrCat("a row of table ", row.table, " of ", tables, " tables"));
}

}  // namespace

void ReportCheck::Note(const ReplicaCommand& command) {
  if (const auto* const model = std::get_if<OpenModel>(&command)) NoteModel(*model);
  if (const auto* const order = std::get_if<StepOrder>(&command)) orders_.push_back(order->kind);
  if (const auto* const load = std::get_if<LoadCheckpoint>(&command)) {
    loads_ = true;
    latest_ = load->source.step;
  }
  if (const auto* const first = std::get_if<TakeParameters>(&command)) latest_ = first->step;
  if (std::holds_alternative<PublishStep>(command)) latest_ = latest_.Next();
  if (std::holds_alternative<BeginJournal>(command)) journals_ = true;
  if (const auto* const take = std::get_if<TakeCheckpoint>(&command)) saves_.push_back(take->step);
  if (const auto* const look = std::get_if<SummarizeTensor>(&command)) {
    summaries_.push_back({look->number, {*layout_, Stripes(size_, stripes_), look->query}});
  }
}

void ReportCheck::NoteModel(const OpenModel& command) {
  const Stripes stripes(command.layout->size(), stripes_);
  const uint64_t size = stripes.SizeOf(stripe_);
  layout_ = command.layout;
  size_ = stripes.size();
  stripe_bytes_ = size * sizeof(float);
  scales_ = std::holds_alternative<LambOptions>(command.optimizer.options);
  full_.squares = full_.digests = (size + stripes.unit() - 1) / stripes.unit();
  full_.row_squares =
      layout_->tables().size() * ((kRowBuckets - stripe_ + stripes_ - 1) / stripes_);
  full_.updates = UpdatesOf(command.layout->OfStripe(stripes, stripe_), stripes.unit());
  full_.sample = ParameterSample(*command.layout, stripes).SizeIn(stripe_);
}

absl::Status ReportCheck::Take(const ReplicaReport& report) {
  return std::visit([this](const auto& one) { return Check(one); }, report);
}

absl::Status ReportCheck::Check(const HaveReport& report) {
  const bool has_rows = layout_ != nullptr && !layout_->tables().empty();
  if (report.bytes <= stripe_bytes_ || has_rows) return absl::OkStatus();
  return BadReport(absl::StrCat(report.bytes, " bytes of push ", report.push.value(),
                                ", expected at most ", stripe_bytes_));
}

absl::Status ReportCheck::Check(const StripeReport& report) {
  if (orders_.empty()) return BadReport("that it has carried out an order, but it has none");
  const Sizes sizes = SizesOf(orders_.front());
  orders_.pop_front();
  absl::Status fits = CheckSize("squares", report.squares.size(), sizes.squares);
  if (fits.ok()) fits = CheckSize("squares of rows", report.row_squares.size(), sizes.row_squares);
  if (fits.ok()) fits = CheckSize("updates", report.updates.size(), sizes.updates);
  if (fits.ok()) fits = CheckSize("samples", report.sample.size(), sizes.sample);
  if (fits.ok()) fits = CheckSize("digests", report.digests.size(), sizes.digests);
  if (fits.ok() && report.bad_row.has_value()) {
    fits = CheckTable(*report.bad_row, layout_->tables().size());
  }
  if (!fits.ok() || !report.bad.has_value() || *report.bad < size_) return fits;
  return BadReport(absl::StrCat("the bad element ", *report.bad, " of a vector of ", size_));
}

ReportCheck::Sizes ReportCheck::SizesOf(StepOrder::Kind kind) const {
  Sizes sizes;
  switch (kind) {
    case StepOrder::Kind::kMeasureSum:
      sizes.squares = full_.squares;
      sizes.row_squares = full_.row_squares;
      break;
    case StepOrder::Kind::kPrepare:
      sizes.updates = scales_ ? full_.updates : 0;
      break;
    case StepOrder::Kind::kScale:
      break;
    case StepOrder::Kind::kDigest:
      sizes.digests = full_.digests;
      break;
    default:
      sizes.sample = full_.sample;
  }
  return sizes;
}

absl::Status ReportCheck::Check(const LoadedReport& report) {
  if (!std::exchange(loads_, false)) return BadReport("that it has loaded what it was not told to");
  if (!report.failed.ok() || report.journaled >= latest_) return absl::OkStatus();
  return BadReport(absl::StrCat("that it can reach step ", report.journaled.value(),
                                " from the checkpoint of step ", latest_.value()));
}

absl::Status ReportCheck::Check(const JournalReport& report) {
  if (!journals_) return BadReport("on a journal that it was not told to begin");
  if (report.durable < durable_ || report.durable > latest_) {
    return BadReport(absl::StrCat("that step ", report.durable.value(),
                                  " is durable, expected one from ", durable_.value(), " to ",
                                  latest_.value()));
  }
  durable_ = report.durable;
  return absl::OkStatus();
}

absl::Status ReportCheck::Check(const SavedReport& report) {
  if (saves_.empty() || saves_.front() != report.step) {
    return BadReport(absl::StrCat("that it has saved step ", report.step.value(),
                                  ", which it was not told to save"));
  }
  saves_.pop_front();
  return absl::OkStatus();
}

absl::Status ReportCheck::Check(const SummaryReport& report) {
  if (summaries_.empty() || summaries_.front().number != report.number) {
    return BadReport(absl::StrCat("the summary ", report.number, ", which it was not asked for"));
  }
  const StripedTensor tensor = summaries_.front().tensor;
  summaries_.pop_front();
  absl::Status fits =
      CheckSize("units of a tensor", report.part.units.size(), tensor.UnitsIn(stripe_));
  if (fits.ok()) {
    fits = CheckSize("values of a tensor", report.part.values.size(), tensor.ValuesIn(stripe_));
  }
  for (const UnitStatistics& unit : report.part.units) {
    if (!fits.ok() || unit.zeros <= tensor.elements()) continue;
    fits = BadReport(absl::StrCat(unit.zeros, " zeros, expected at most ", tensor.elements(),
                                  ", the tensor's size"));
  }
  return fits;
}

}  // namespace sluice

#include "server/rpc/servers/report_messages.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/field.h"
#include "server/rpc/servers/number_fields.h"

namespace sluice {
namespace {

v1::HolderFault FaultOf(const absl::Status& error) {
  v1::HolderFault fault;
  fault.set_code(static_cast<int>(error.code()));
  fault.set_message(std::string(error.message()));
  const Reason reason = ReasonOf(error);
  if (reason != Reason::kNone) fault.set_reason(std::string(ReasonName(reason)));
  return fault;
}

void Put(const HaveReport& report, v1::HolderMessage* message) {
  v1::HolderHave& have = *message->mutable_have();
  have.set_push(report.push.value());
  have.set_bytes(report.bytes);
  if (report.norm.has_value()) have.set_norm(*report.norm);
  if (!report.refused.ok()) *have.mutable_refused() = FaultOf(report.refused);
}

void Put(const StripeReport& report, v1::HolderMessage* message) {
  v1::HolderCarried& carried = *message->mutable_carried();
  carried.mutable_squares()->Add(report.squares.begin(), report.squares.end());
  for (const TrustSquares& squares : report.updates) {
    carried.add_updates(squares.current);
    carried.add_updates(squares.update);
  }
  carried.mutable_row_squares()->Add(report.row_squares.begin(), report.row_squares.end());
  if (report.bad.has_value()) carried.set_bad(*report.bad);
  if (report.bad_row.has_value()) {
    carried.mutable_bad_row()->set_table(report.bad_row->table);
    carried.mutable_bad_row()->set_id(report.bad_row->id);
  }
  carried.mutable_sample()->Add(report.sample.begin(), report.sample.end());
  carried.mutable_digests()->Add(report.digests.begin(), report.digests.end());
}

void Put(const LoadedReport& report, v1::HolderMessage* message) {
  v1::HolderLoaded& loaded = *message->mutable_loaded();
  if (!report.failed.ok()) *loaded.mutable_failed() = FaultOf(report.failed);
  loaded.set_journaled(report.journaled.value());
}

void Put(const JournalReport& report, v1::HolderMessage* message) {
  v1::HolderJournal& journal = *message->mutable_journal();
  journal.set_durable(report.durable.value());
  if (!report.stopped.ok()) *journal.mutable_stopped() = FaultOf(report.stopped);
}

void Put(const SavedReport& report, v1::HolderMessage* message) {
  v1::HolderSaved& saved = *message->mutable_saved();
  saved.set_step(report.step.value());
  if (!report.failed.ok()) *saved.mutable_failed() = FaultOf(report.failed);
  saved.set_checksum(report.checksum);
}

void Put(const SummaryReport& report, v1::HolderMessage* message) {
  v1::HolderSummary& summary = *message->mutable_summary();
  summary.set_number(report.number);
  for (const UnitStatistics& unit : report.part.units) {
    v1::UnitStatistics& put = *summary.add_units();
    put.set_min(unit.min);
    put.set_max(unit.max);
    put.set_mean(unit.mean);
    put.set_deviations(unit.deviations);
    put.set_squares(unit.squares);
    put.set_zeros(unit.zeros);
  }
  summary.mutable_values()->Add(report.part.values.begin(), report.part.values.end());
}

using Report = absl::StatusOr<ReplicaReport>;

absl::Status Read(const v1::HolderFault& message, absl::Status* fault) {
  const int code = message.code();
  if (code < 1 || code > 16) return BadField("code", absl::StrCat(code), "1 to 16");
  const Reason reason = ReasonFromName(message.reason());
  if (reason == Reason::kNone && !message.reason().empty()) {
    return BadField("reason", Shown(message.reason()), "one that is documented");
  }
  const auto as_code = static_cast<absl::StatusCode>(code);
  *fault = reason == Reason::kNone ? absl::Status(as_code, message.message())
                                   : MakeError(as_code, reason, message.message());
  return absl::OkStatus();
}

Report Read(const v1::HolderHave& message) {
  HaveReport have;
  have.push = PushId(message.push());
  have.bytes = message.bytes();
  if (message.has_norm()) {
    const absl::Status sound = CheckNotNegative("norm", message.norm());
    if (!sound.ok()) return sound;
    have.norm = message.norm();
  }
  if (message.has_refused()) {
    const absl::Status sound = Read(message.refused(), &have.refused);
    if (!sound.ok()) return sound;
  }
  return have;
}

Report Read(const v1::HolderCarried& message) {
  StripeReport report;
  report.squares.assign(message.squares().begin(), message.squares().end());
  if (message.updates_size() % 2 != 0) {
    return BadField("updates", absl::StrCat(message.updates_size(), " numbers"), "pairs");
  }
  for (int i = 0; i < message.updates_size(); i += 2) {
    report.updates.push_back({message.updates(i), message.updates(i + 1)});
  }
  report.row_squares.assign(message.row_squares().begin(), message.row_squares().end());
  if (message.has_bad()) report.bad = message.bad();
  if (message.has_bad_row()) {
    report.bad_row = BadRow{message.bad_row().table(), message.bad_row().id()};
  }
  report.sample.assign(message.sample().begin(), message.sample().end());
  report.digests.assign(message.digests().begin(), message.digests().end());
  return report;
}

Report Read(const v1::HolderLoaded& message) {
  LoadedReport loaded = {absl::OkStatus(), Step(message.journaled())};
  if (!message.has_failed()) return loaded;
  const absl::Status sound = Read(message.failed(), &loaded.failed);
  if (!sound.ok()) return sound;
  return loaded;
}

Report Read(const v1::HolderJournal& message) {
  JournalReport journal = {Step(message.durable()), absl::OkStatus()};
  if (!message.has_stopped()) return journal;
  const absl::Status sound = Read(message.stopped(), &journal.stopped);
  if (!sound.ok()) return sound;
  return journal;
}

Report Read(const v1::HolderSaved& message) {
  SavedReport saved = {Step(message.step()), absl::OkStatus(), message.checksum()};
  if (!message.has_failed()) return saved;
  const absl::Status sound = Read(message.failed(), &saved.failed);
  if (!sound.ok()) return sound;
  return saved;
}

absl::Status Check(const v1::UnitStatistics& unit) {
  absl::Status sound = CheckFinite("min", unit.min());
  if (sound.ok()) sound = CheckFinite("max", unit.max());
  if (sound.ok()) sound = CheckFinite("mean", unit.mean());
  if (sound.ok()) sound = CheckNotNegative("deviations", unit.deviations());
  if (sound.ok()) sound = CheckNotNegative("squares", unit.squares());
  return sound;
}

Report Read(const v1::HolderSummary& message) {
  SummaryReport report;
  report.number = message.number();
  for (const v1::UnitStatistics& unit : message.units()) {
    const absl::Status sound = Check(unit);
    if (!sound.ok()) return sound;
    report.part.units.push_back(
        {unit.min(), unit.max(), unit.mean(), unit.deviations(), unit.squares(), unit.zeros()});
  }
  for (const float value : message.values()) {
    const absl::Status sound = CheckFinite("values", value);
    if (!sound.ok()) return sound;
    report.part.values.push_back(value);
  }
  return report;
}

std::vector<HotRow> HottestOf(const v1::HolderTable& table) {
  std::vector<HotRow> hottest;
  const int told =
      std::min({table.hottest_size(), table.hottest_reads_size(), static_cast<int>(HotRow::kMost)});
  for (int i = 0; i < told; ++i) hottest.push_back({table.hottest(i), table.hottest_reads(i)});
  return hottest;
}

}  // namespace

v1::HolderMessage ToProto(const ReplicaReport& report) {
  v1::HolderMessage message;
  std::visit([&message](const auto& one) { Put(one, &message); }, report);
  return message;
}

absl::StatusOr<ReplicaReport> FromProto(const v1::HolderMessage& message) {
  switch (message.message_case()) {
    case v1::HolderMessage::kHave:
      return Read(message.have());
    case v1::HolderMessage::kCarried:
      return Read(message.carried());
    case v1::HolderMessage::kLoaded:
      return Read(message.loaded());
    case v1::HolderMessage::kSaved:
      return Read(message.saved());
    case v1::HolderMessage::kJournal:
      return Read(message.journal());
    case v1::HolderMessage::kSummary:
      return Read(message.summary());
    default:
      return BadField("message", absl::StrCat(static_cast<int>(message.message_case())),
                      "a report");
  }
}

v1::HolderFigures ToProto(const StripeFigures& figures) {
  v1::HolderFigures message;
  if (figures.step.has_value()) message.set_step(figures.step->value());
  message.set_wire_bytes_received(figures.wire_bytes_received);
  message.set_wire_bytes_sent(figures.wire_bytes_sent);
  for (const SessionId session : figures.pulling) message.add_pulling(session.value());
  for (const TableStatus& table : figures.tables) {
    v1::HolderTable& told = *message.add_tables();
    told.set_rows(table.rows);
    told.set_rows_on_disk(table.on_disk);
    told.set_waiting(table.waiting);
    told.set_bytes(table.bytes);
    told.set_dropped(table.dropped);
    told.set_removed(table.removed);
    told.set_reads(table.reads);
    told.set_hits(table.hits);
    told.set_ages(table.ages);
    for (const HotRow& row : table.hottest) {
      told.add_hottest(row.id);
      told.add_hottest_reads(row.reads);
    }
  }
  return message;
}

StripeFigures FromProto(const v1::HolderFigures& message) {
  StripeFigures figures;
  if (message.has_step()) figures.step = Step(message.step());
  figures.wire_bytes_received = message.wire_bytes_received();
  figures.wire_bytes_sent = message.wire_bytes_sent();
  for (const uint64_t session : message.pulling()) {
    if (figures.pulling.size() < StripeFigures::kMostPulling) figures.pulling.emplace_back(session);
  }
  for (const v1::HolderTable& table : message.tables()) {
    figures.tables.push_back({table.rows(), table.rows_on_disk(), table.waiting(), table.bytes(),
                              table.dropped(), table.removed(), table.reads(), table.hits(),
                              table.ages(), HottestOf(table)});
  }
  return figures;
}

}  // namespace sluice

#include "tools/ctl/render/worker_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/wire/settings.h"

namespace sluice {
namespace {

absl::optional<double> RateBetween(const v1::Worker& before, const v1::Worker& now,
                                   absl::Duration time) {
  if (time <= absl::ZeroDuration() || now.accepted() < before.accepted()) return absl::nullopt;
  return static_cast<double>(now.accepted() - before.accepted()) / absl::ToDoubleSeconds(time);
}

double LossRank(const v1::Worker& worker) {
  return std::isnan(worker.loss()) ? std::numeric_limits<double>::infinity() : worker.loss();
}

// What SortRows() compares: the largest comes first.
double RankOf(SortKey key, const WorkerRow& row) {
  switch (key) {
    case SortKey::kStep:
      return static_cast<double>(row.worker.step());
    case SortKey::kLag:
      return static_cast<double>(row.worker.lag());
    case SortKey::kRate:
      return row.rate.value_or(-1);
    case SortKey::kLoss:
      return LossRank(row.worker);
    case SortKey::kAccepted:
      return static_cast<double>(row.worker.accepted());
    case SortKey::kStale:
      return static_cast<double>(row.worker.stale());
    case SortKey::kSeen:
      return absl::ToDoubleSeconds(FromProto(row.worker.since_last_seen()));
    case SortKey::kWaits:
      return row.wait.has_value() ? 1 : 0;
    case SortKey::kName:
      break;
  }
  return 0;
}

std::string Since(bool known, const google::protobuf::Duration& time) {
  return known ? TimeText(FromProto(time)) : "-";
}

// "awaited" if others wait for it, "done" if it has contributed to the step.
std::string RoleInStep(const WorkerRow& row) {
  if (row.wait.has_value()) {
    const uint64_t arrived = row.wait->bytes_arrived();
    return arrived == 0 ? "awaited" : absl::StrCat("awaited, ", BytesText(arrived), " came");
  }
  return row.worker.contributed() ? "done" : "-";
}

std::string PresenceText(v1::WorkerPresence presence) {
  return absl::AsciiStrToLower(v1::WorkerPresence_Name(presence));
}

}  // namespace

std::vector<WorkerRow> RowsOf(const Sample& now, const Sample* earlier) {
  std::map<std::string, const v1::Worker*> before;
  if (earlier != nullptr) {
    for (const v1::Worker& worker : earlier->workers.workers()) before[worker.worker()] = &worker;
  }
  std::map<std::string, const v1::AwaitedWorker*> awaited;
  for (const auto& worker : now.state.current().awaited()) awaited[worker.worker()] = &worker;
  std::vector<WorkerRow> rows;
  for (const v1::Worker& worker : now.workers.workers()) {
    WorkerRow row;
    row.worker = worker;
    const auto was = before.find(worker.worker());
    if (was != before.end()) row.rate = RateBetween(*was->second, worker, now.at - earlier->at);
    const auto wait = awaited.find(worker.worker());
    if (wait != awaited.end()) row.wait = *wait->second;
    rows.push_back(std::move(row));
  }
  return rows;
}

bool TakesPart(const v1::Worker& worker) {
  return worker.presence() == v1::PRESENT || worker.presence() == v1::LOST;
}

const std::vector<std::string>& SortNames() {
  static const auto* const names = new std::vector<std::string>{
      "name", "step", "lag", "rate", "loss", "accepted", "stale", "seen", "waits"};
  return *names;
}

absl::StatusOr<SortKey> ParseSortKey(absl::string_view name) {
  const auto& names = SortNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "found the order ", Shown(name), ", expected one of ", absl::StrJoin(names, ", ")));
  }
  return static_cast<SortKey>(found - names.begin());
}

void SortRows(SortKey key, std::vector<WorkerRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [key](const WorkerRow& a, const WorkerRow& b) {
    if (key == SortKey::kName) return a.worker.worker() < b.worker.worker();
    return RankOf(key, a) > RankOf(key, b);
  });
}

std::vector<Column> WorkerColumns(bool rates) {
  std::vector<Column> columns = {
      {"WORKER"},         {"STATE"},          {"STEP", true},  {"LAG", true},
      {"LOSS", true},     {"ACCEPTED", true}, {"STALE", true}, {"PUSHED AGO", true},
      {"SEEN AGO", true}, {"THIS STEP"},      {"HOST"}};
  if (rates) columns.insert(columns.begin() + 4, {"RATE/s", true});
  return columns;
}

std::vector<std::string> WorkerCells(const WorkerRow& row, bool rates) {
  const v1::Worker& worker = row.worker;
  std::vector<std::string> cells = {
      Printable(worker.worker()),
      PresenceText(worker.presence()),
      absl::StrCat(worker.step()),
      absl::StrCat(worker.lag()),
      worker.has_since_last_push() ? absl::StrFormat("%.4g", worker.loss()) : "-",
      absl::StrCat(worker.accepted()),
      absl::StrCat(worker.stale()),
      Since(worker.has_since_last_push(), worker.since_last_push()),
      Since(worker.has_since_last_seen(), worker.since_last_seen()),
      RoleInStep(row),
      absl::StrCat(Printable(worker.host()), ":", worker.pid())};
  if (rates) {
    cells.insert(cells.begin() + 4, row.rate.has_value() ? RateText(*row.rate) : "-");
  }
  return cells;
}

}  // namespace sluice

#include "server/closing_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string Render(const Rows& rows) {
  size_t name_width = 0;
  size_t value_width = 0;
  for (const auto& row : rows) {
    name_width = std::max(name_width, row.first.size());
    value_width = std::max(value_width, row.second.size());
  }
  std::string table;
  for (const auto& row : rows) {
    absl::StrAppendFormat(&table, "  %-*s  %*s\n", static_cast<int>(name_width), row.first,
                          static_cast<int>(value_width), row.second);
  }
  return table;
}

std::string Megabytes(uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::string ClosingTable(const ShardState& state, const Results& results) {
  const PushBooks& books = state.books;
  Rows rows = {
      {"steps", absl::StrCat(state.step.value())},
      {"pushes received", absl::StrCat(books.received)},
      {"  accepted", absl::StrCat(books.accepted)},
      {"  stale", absl::StrCat(books.stale)},
      {"  duplicate", absl::StrCat(books.duplicate)},
      {"  rejected", absl::StrCat(books.rejected)},
      {"  aborted", absl::StrCat(books.aborted)},
  };
  if (books.in_progress > 0) rows.push_back({"  in progress", absl::StrCat(books.in_progress)});
  rows.push_back({"received from workers", Megabytes(state.traffic.bytes_received)});
  rows.push_back({"sent to workers", Megabytes(state.traffic.bytes_sent)});
  rows.push_back(
      {"time per step", absl::StrFormat("%.4f s", absl::ToDoubleSeconds(state.MeanStepTime()))});
  for (const auto& result : results) {
    rows.push_back({result.first, absl::StrFormat("%.4f", result.second)});
  }
  return absl::StrCat("Sluice job ", state.job_id, "\n", Render(rows));
}

}  // namespace sluice

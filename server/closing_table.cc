#include "server/closing_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/observe/readings.h"

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

std::string SecondsText(const google::protobuf::Duration& duration) {
  return absl::StrFormat("%.4f s", Seconds(duration));
}

std::string Warnings(const v1::ServerState& state) {
  std::string lines;
  for (const v1::TrainingWarning& warning : state.warnings()) {
    absl::StrAppend(&lines, "  warning  ", warning.text());
    if (warning.has_over()) absl::StrAppend(&lines, " (until step ", warning.over(), ")");
    absl::StrAppend(&lines, "\n");
  }
  return lines;
}

}  // namespace

std::string ClosingTable(const v1::ServerState& state, const Results& results,
                         absl::optional<uint32_t> crc) {
  const v1::PushCounters& pushes = state.pushes();
  Rows rows = {{"steps", absl::StrCat(state.step())},
               {"pushes received", absl::StrCat(pushes.received())}};
  for (const auto& [disposition, count] : Dispositions(pushes)) {
    rows.push_back({absl::StrCat("  ", disposition), absl::StrCat(count)});
  }
  if (pushes.in_progress() > 0) {
    rows.push_back({"  in progress", absl::StrCat(pushes.in_progress())});
  }
  rows.push_back({"mean staleness", absl::StrFormat("%.2f", state.staleness().mean())});
  rows.push_back({"received from workers", Megabytes(state.bytes_received())});
  const bool knows_wire = state.servers() == 1;
  if (knows_wire) {
    rows.push_back({"  received on the wire", Megabytes(state.wire_bytes_received())});
  }
  rows.push_back({"sent to workers", Megabytes(state.bytes_sent())});
  if (knows_wire) rows.push_back({"  sent on the wire", Megabytes(state.wire_bytes_sent())});
  rows.push_back({"time per step", SecondsText(state.mean_step_time())});
  rows.push_back({"longest wait for a step", SecondsText(state.longest_wait())});
  for (const auto& result : results) {
    rows.push_back({absl::Utf8SafeCEscape(result.first), absl::StrFormat("%.4f", result.second)});
  }
  if (crc.has_value()) rows.push_back({"parameters' CRC-32", absl::StrFormat("%08x", *crc)});
  return absl::StrCat("Sluice job ", state.job_id(), "\n", Render(rows), Warnings(state));
}

std::string ClosingLine(const std::string& model, const v1::ServerState& state,
                        const Results& results, absl::optional<uint32_t> crc) {
  std::string line = absl::StrCat("model ", model, ": ", state.step(), " steps, ",
                                  state.pushes().received(), " pushes");
  for (const auto& result : results) {
    absl::StrAppend(&line, ", ", absl::Utf8SafeCEscape(result.first), " ",
                    absl::StrFormat("%.4f", result.second));
  }
  if (crc.has_value())
    absl::StrAppend(&line, ", parameters' CRC-32 ", absl::StrFormat("%08x", *crc));
  return absl::StrCat(line, "\n", Warnings(state));
}

}  // namespace sluice

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

// Of the time from the initial parameters to the latest step.
void AddSpeed(const v1::ServerState& state, Rows* rows) {
  rows->push_back({"time per step", SecondsText(state.mean_step_time())});
  rows->push_back({"longest wait for a step", SecondsText(state.longest_wait())});
  const double trained = Seconds(state.mean_step_time()) * static_cast<double>(state.steps_made());
  if (state.samples() == 0 || trained <= 0) return;
  const double rate = static_cast<double>(state.samples()) / trained;
  rows->push_back({"samples per second", absl::StrFormat("%.0f", rate)});
}

// How the job has ended. A warning's sentence stands below the table.
std::string Title(const v1::ServerState& state) {
  const v1::Verdict& verdict = state.verdict();
  std::string title = absl::StrCat("the server ended at step ", state.step(), TrainedWords(state));
  if (verdict.kind() == v1::Verdict::DIVERGED) {
    title = absl::StrCat("training has diverged, and ended at step ", state.step());
  } else if (state.phase() == v1::FINISHED || state.phase() == v1::DRAINING) {
    title = verdict.text();
  }
  if (state.incarnation() <= 1) return title;
  return absl::StrCat(title, " (all numbers but the steps are those of incarnation ",
                      state.incarnation(), ")");
}

// Without what has not occurred. A server that was started again counts anew.
void AddPushes(const v1::ServerState& state, Rows* rows) {
  const v1::PushCounters& pushes = state.pushes();
  rows->push_back({"pushes received", absl::StrCat(pushes.received())});
  for (const auto& [disposition, count] : Dispositions(pushes)) {
    if (count > 0) rows->push_back({absl::StrCat("  ", disposition), absl::StrCat(count)});
  }
  if (pushes.in_progress() > 0) {
    rows->push_back({"  in progress", absl::StrCat(pushes.in_progress())});
  }
  if (state.staleness().mean() > 0) {
    rows->push_back({"mean staleness", absl::StrFormat("%.2f", state.staleness().mean())});
  }
}

void AddTraffic(const v1::ServerState& state, Rows* rows) {
  const bool knows_wire = state.servers() == 1;
  const auto add = [&](const std::string& way, uint64_t bytes, const char* on_wire, uint64_t wire) {
    if (bytes == 0) return;
    rows->push_back({way, Megabytes(bytes)});
    if (knows_wire) rows->push_back({on_wire, Megabytes(wire)});
  };
  add("received from workers", state.bytes_received(), "  received on the wire",
      state.wire_bytes_received());
  add("sent to workers", state.bytes_sent(), "  sent on the wire", state.wire_bytes_sent());
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
  Rows rows;
  for (const auto& result : results) {
    rows.push_back({absl::Utf8SafeCEscape(result.first), absl::StrFormat("%.4f", result.second)});
  }
  if (state.has_loss()) rows.push_back({"training loss", absl::StrFormat("%.4f", state.loss())});
  rows.push_back({"steps", absl::StrCat(state.step())});
  if (state.has_mean_step_time()) AddSpeed(state, &rows);
  if (state.has_last_checkpoint()) {
    rows.push_back({"checkpoint of step", absl::StrCat(state.last_checkpoint().step())});
  }
  if (crc.has_value()) rows.push_back({"parameters' CRC-32", absl::StrFormat("%08x", *crc)});
  AddPushes(state, &rows);
  AddTraffic(state, &rows);
  return absl::StrCat("Sluice job ", state.job_id(), ": ", Title(state), "\n", Render(rows),
                      Warnings(state));
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

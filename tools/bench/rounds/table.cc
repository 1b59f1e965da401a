#include "tools/bench/rounds/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace sluice::bench {
namespace {

using Results = std::vector<Result>;

// Returns Sluice's rows, in the order in which they first appear.
std::vector<std::string> SluiceRows(const Results& results) {
  std::vector<std::string> names;
  for (const Result& result : results) {
    const Row& row = result.cell.row;
    if (!IsSluice(row) || std::count(names.begin(), names.end(), row.name) > 0) continue;
    names.push_back(row.name);
  }
  return names;
}

// Returns this result's seconds / those of Sluice's row, or "-" if that was not measured.
std::string Ratio(const Results& results, const Result& result, const std::string& sluice) {
  const auto other = std::find_if(results.begin(), results.end(), [&](const Result& candidate) {
    return candidate.cell.row.name == sluice && candidate.cell.workers == result.cell.workers &&
           candidate.cell.elements == result.cell.elements;
  });
  if (other == results.end()) return "-";
  return absl::StrFormat("%.2f", SpreadOf(result.measurement.seconds).median /
                                     SpreadOf(other->measurement.seconds).median);
}

std::string Ratios(const Results& results, const Result& result,
                   const std::vector<std::string>& sluice_rows) {
  std::string ratios;
  for (const std::string& name : sluice_rows) {
    absl::StrAppendFormat(&ratios, " %*s", name.size() + 2, Ratio(results, result, name));
  }
  return ratios;
}

std::string RatioHeadings(const std::vector<std::string>& sluice_rows) {
  std::string headings;
  for (const std::string& name : sluice_rows) absl::StrAppend(&headings, " / ", name);
  return headings;
}

// The fields of the server stay empty if the row has none.
std::string Server(const Row& row, const std::string& field) {
  return row.has_server ? field : "-";
}

std::string Line(const Results& results, const Result& result,
                 const std::vector<std::string>& sluice_rows) {
  const Cell& cell = result.cell;
  const Measurement& measurement = result.measurement;
  const Spread seconds = SpreadOf(measurement.seconds);
  return absl::StrCat(
      absl::StrFormat("%5.1f %7d %-16s | %8.5f %8.5f–%8.5f %6d |", Megabytes(Bytes(cell)),
                      cell.workers, cell.row.name, seconds.median, seconds.min, seconds.max,
                      measurement.seconds.size()),
      Ratios(results, result, sluice_rows),
      absl::StrFormat(" | %8s+%8.5f",
                      Server(cell.row, absl::StrFormat("%.5f", ServerCpuPerRound(measurement))),
                      WorkersCpuPerRound(measurement)),
      absl::StrFormat(
          " | %5s/%5.0f\n",
          Server(cell.row, absl::StrFormat("%.0f", Megabytes(measurement.server_peak_bytes))),
          Megabytes(measurement.worker_peak_bytes)));
}

std::string JsonLine(const Result& result) {
  const Measurement& measurement = result.measurement;
  const Spread seconds = SpreadOf(measurement.seconds);
  const auto number = [](std::string* out, double value) {
    absl::StrAppendFormat(out, "%.6f", value);
  };
  return absl::StrCat(
      absl::StrFormat(R"({"row":"%s","bytes":%d,"workers":%d,)", result.cell.row.name,
                      Bytes(result.cell), result.cell.workers),
      absl::StrFormat(R"("seconds":{"median":%.6f,"min":%.6f,"max":%.6f,"rounds":[%s]},)",
                      seconds.median, seconds.min, seconds.max,
                      absl::StrJoin(measurement.seconds, ",", number)),
      absl::StrFormat(R"("cpu_seconds":{"server":%.6f,"workers":%.6f},)",
                      ServerCpuPerRound(measurement), WorkersCpuPerRound(measurement)),
      absl::StrFormat(R"("peak_bytes":{"server":%d,"worker":%d}})", measurement.server_peak_bytes,
                      measurement.worker_peak_bytes),
      "\n");
}

}  // namespace

std::string Table(const Circumstances& circumstances, const Results& results) {
  const std::vector<std::string> sluice_rows = SluiceRows(results);
  const std::string ratio_headings = RatioHeadings(sluice_rows);
  std::string table = absl::StrFormat(
      "%d passes, %.0f s in all; %d cores, load %.1f before; %d thread(s) of arithmetic in each "
      "peer's process; congestion control %s\n\n",
      circumstances.passes, circumstances.seconds, circumstances.cores, circumstances.load,
      circumstances.threads, circumstances.congestion);
  // Pads by hand, since a dash is one column but three bytes.
  absl::StrAppendFormat(&table, "%-30s | %-34s |%-*s | %-17s | %s\n", "", "seconds per round",
                        ratio_headings.size(), " times", "CPU-s per round", "peak MB");
  absl::StrAppendFormat(&table, "%5s %7s %-16s | %8s %s %6s |%s | %8s+%-8s | %s\n", "MB", "workers",
                        "row", "median", "     min–max    ", "rounds", ratio_headings, "server",
                        "workers", "server/worker");
  for (const Result& result : results) {
    absl::StrAppend(&table, Line(results, result, sluice_rows));
  }
  return table;
}

std::string JsonLines(const Results& results) {
  std::string lines;
  for (const Result& result : results) absl::StrAppend(&lines, JsonLine(result));
  return lines;
}

}  // namespace sluice::bench

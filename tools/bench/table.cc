#include "tools/bench/table.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace sluice::bench {
namespace {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

double PerRound(double total, const Measurement& measurement) {
  return total / static_cast<double>(measurement.seconds.size());
}

double CpuPerRound(const Measurement& measurement) {
  return PerRound(measurement.server_cpu_seconds + measurement.workers_cpu_seconds, measurement);
}

std::string Seconds(const Spread& spread) {
  return absl::StrFormat("%7.5f %7.5f–%7.5f", spread.median, spread.min, spread.max);
}

std::string Cpu(const Measurement& measurement) {
  return absl::StrFormat("%7.5f+%7.5f", PerRound(measurement.server_cpu_seconds, measurement),
                         PerRound(measurement.workers_cpu_seconds, measurement));
}

std::string Peak(const Measurement& measurement) {
  return absl::StrFormat("%4.0f/%4.0f", Megabytes(measurement.server_peak_bytes),
                         Megabytes(measurement.worker_peak_bytes));
}

// Loopback's speed depends on it more than on anything else.
std::string CongestionControl() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name = "unknown";
  file >> name;
  return name;
}

// Literal, since a dash is one column but three bytes.
constexpr char kHeadings[] =
    "                     | seconds per round: median min–max                       "
    "| CPU-seconds per round: server+workers | peak MB: server/worker\n"
    "   MB workers socket | Sluice                  plain                     ratio "
    "| Sluice          plain           ratio | Sluice    plain\n";

std::string Row(const Comparison& row) {
  const Spread sluice = SpreadOf(row.sluice.seconds);
  const Spread plain = SpreadOf(row.plain.seconds);
  return absl::StrFormat(
      "%5.1f %7d %6s | %s %s %7.2f | %s %s %5.2f | %s %s\n", Megabytes(Bytes(row.cell)),
      row.cell.workers, SocketName(row.cell.socket), Seconds(sluice), Seconds(plain),
      sluice.median / plain.median, Cpu(row.sluice), Cpu(row.plain),
      CpuPerRound(row.sluice) / CpuPerRound(row.plain), Peak(row.sluice), Peak(row.plain));
}

std::string JsonLine(Cell cell, Side side, const Measurement& measurement) {
  const Spread seconds = SpreadOf(measurement.seconds);
  const auto number = [](std::string* out, double value) {
    absl::StrAppendFormat(out, "%.6f", value);
  };
  return absl::StrCat(
      absl::StrFormat(R"({"side":"%s","socket":"%s","bytes":%d,"workers":%d,)", SideName(side),
                      SocketName(cell.socket), Bytes(cell), cell.workers),
      absl::StrFormat(R"("seconds":{"median":%.6f,"min":%.6f,"max":%.6f,"rounds":[%s]},)",
                      seconds.median, seconds.min, seconds.max,
                      absl::StrJoin(measurement.seconds, ",", number)),
      absl::StrFormat(R"("cpu_seconds":{"server":%.6f,"workers":%.6f},)",
                      PerRound(measurement.server_cpu_seconds, measurement),
                      PerRound(measurement.workers_cpu_seconds, measurement)),
      absl::StrFormat(R"("peak_bytes":{"server":%d,"worker":%d}})", measurement.server_peak_bytes,
                      measurement.worker_peak_bytes),
      "\n");
}

}  // namespace

std::string Table(const Circumstances& circumstances, const std::vector<Comparison>& comparisons) {
  std::string table = absl::StrFormat(
      "%d rounds in %d passes, %.0f s in all; %d cores, load %.1f before; congestion control "
      "%s\n\n",
      circumstances.rounds, circumstances.passes, circumstances.seconds,
      std::thread::hardware_concurrency(), circumstances.load, CongestionControl());
  absl::StrAppend(&table, kHeadings);
  for (const Comparison& comparison : comparisons) absl::StrAppend(&table, Row(comparison));
  return table;
}

std::string JsonLines(const std::vector<Comparison>& comparisons) {
  std::string lines;
  for (const Comparison& comparison : comparisons) {
    absl::StrAppend(&lines, JsonLine(comparison.cell, Side::kSluice, comparison.sluice),
                    JsonLine(comparison.cell, Side::kPlain, comparison.plain));
  }
  return lines;
}

}  // namespace sluice::bench

#include "tools/bench/crowds/crowd_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

using CrowdResults = std::vector<CrowdResult>;

double Quotient(double dividend, double divisor) { return divisor > 0 ? dividend / divisor : 0; }

// In microseconds, of one round.
double ServerCpu(const CrowdResult& result) {
  return 1e6 * Quotient(result.server_cpu_seconds, static_cast<double>(result.rounds));
}
double WorkerCpu(const CrowdResult& result) {
  return 1e6 * Quotient(result.workers_cpu_seconds, static_cast<double>(result.rounds));
}

double RoundsPerSecond(const CrowdResult& result) {
  return Quotient(static_cast<double>(result.rounds), result.seconds);
}

const CrowdResult& FirstLike(const CrowdResults& results, const CrowdResult& result) {
  return *std::find_if(results.begin(), results.end(), [&](const CrowdResult& other) {
    return other.of.bytes == result.of.bytes && other.of.mode == result.of.mode;
  });
}

std::string KillLine(const KillCost& kill) {
  return absl::StrFormat(
      "      %d killed at once: all evicted after %.1f s; the others made %.0f rounds/s until then "
      "and %.0f afterwards, each at least %d\n",
      kill.killed, kill.eviction_seconds, kill.rate_before, kill.rate_after, kill.least_after);
}

std::string Lines(const CrowdResults& results, const CrowdResult& result) {
  std::string lines = absl::StrFormat(
      "%8.1f %7d %-7s | %8.1f %7.2f %8.1f | %8.0f %9.3f %9.3f %6.1f | %6.2f | %6.1f %9.3f %7.2f | "
      "%6.1f | %s\n",
      static_cast<double>(result.of.bytes) / 1e3, result.of.workers, result.of.mode,
      ServerCpu(result), Quotient(ServerCpu(result), ServerCpu(FirstLike(results, result))),
      WorkerCpu(result), RoundsPerSecond(result), 1e3 * result.median_seconds,
      1e3 * result.p99_seconds, Quotient(result.p99_seconds, result.median_seconds),
      result.join_seconds, result.idle.bytes_per_worker / 1e3, result.idle.wakeups_per_second,
      1e6 * result.idle.cpu_per_second, static_cast<double>(result.server_peak_bytes) / 1e6,
      result.wrong.empty() ? "right" : "WRONG");
  if (result.kill.has_value()) lines += KillLine(*result.kill);
  if (!result.wrong.empty()) absl::StrAppend(&lines, "      wrong: ", result.wrong, "\n");
  return lines;
}

std::string KillJson(const CrowdResult& result) {
  if (!result.kill.has_value()) return "null";
  return absl::StrFormat(
      R"({"killed":%d,"eviction_seconds":%.3f,"rate_before":%.3f,"rate_after":%.3f,"least_after":%d})",
      result.kill->killed, result.kill->eviction_seconds, result.kill->rate_before,
      result.kill->rate_after, result.kill->least_after);
}

std::string JsonLine(const CrowdResult& result) {
  return absl::StrCat(
      absl::StrFormat(R"({"bytes":%d,"workers":%d,"mode":"%s","rounds":%d,"seconds":%.6f,)",
                      result.of.bytes, result.of.workers, result.of.mode, result.rounds,
                      result.seconds),
      absl::StrFormat(R"("cpu_microseconds":{"server":%.3f,"worker":%.3f},)", ServerCpu(result),
                      WorkerCpu(result)),
      absl::StrFormat(R"("round_seconds":{"median":%.6f,"p99":%.6f},"join_seconds":%.6f,)",
                      result.median_seconds, result.p99_seconds, result.join_seconds),
      absl::StrFormat(
          R"("idle_worker":{"bytes":%.0f,"wakeups_per_second":%.4f,"cpu_microseconds_per_second":%.3f},)",
          result.idle.bytes_per_worker, result.idle.wakeups_per_second,
          1e6 * result.idle.cpu_per_second),
      absl::StrFormat(R"("server_peak_bytes":%d,"kill":%s,"right":%s})", result.server_peak_bytes,
                      KillJson(result), result.wrong.empty() ? "true" : "false"),
      "\n");
}

}  // namespace

std::string CrowdTable(const CrowdResults& results) {
  std::string table =
      "                         | CPU µs of a round         | a round                             "
      "| join   | idle worker, of the server | peak   |\n"
      "      KB workers mode    |   server x first   worker | rounds/s median ms    p99 ms /median "
      "|      s |     KB wakeups/s    µs/s |     MB | counters\n";
  for (const CrowdResult& result : results) absl::StrAppend(&table, Lines(results, result));
  return table;
}

std::string CrowdJsonLines(const CrowdResults& results) {
  std::string lines;
  for (const CrowdResult& result : results) absl::StrAppend(&lines, JsonLine(result));
  return lines;
}

}  // namespace sluice::bench

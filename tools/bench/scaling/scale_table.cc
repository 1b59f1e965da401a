#include "tools/bench/scaling/scale_table.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/bench/harness/line_fit.h"

namespace sluice::bench {
namespace {

double CpuPerGradient(const Result& result) {
  return ServerCpuPerRound(result.measurement) / result.cell.workers;
}

std::string ResultLine(const Result& result) {
  const Spread seconds = SpreadOf(result.measurement.seconds);
  const double gigabytes = 2e-9 * static_cast<double>(Bytes(result.cell)) * result.cell.workers;
  return absl::StrFormat("%5.1f %7d | %8.5f %8.5f–%8.5f %6d | %6.2f | %10.6f | %6.0f/%6.0f\n",
                         Megabytes(Bytes(result.cell)), result.cell.workers, seconds.median,
                         seconds.min, seconds.max, result.measurement.seconds.size(),
                         gigabytes / seconds.median, CpuPerGradient(result),
                         Megabytes(result.measurement.server_peak_bytes),
                         Megabytes(result.measurement.worker_peak_bytes));
}

// Returns the results of each size; the sizes ascend.
std::map<uint64_t, std::vector<const Result*>> BySize(const std::vector<Result>& results) {
  std::map<uint64_t, std::vector<const Result*>> by_size;
  for (const Result& result : results) by_size[Bytes(result.cell)].push_back(&result);
  return by_size;
}

std::string Estimate(const GradientCost& cost, const Site& site) {
  const Capacity capacity = CapacityOf(cost, site);
  return absl::StrFormat("%5.1f %7d | %10.1f %10.1f %7s | %10.1f | %10d %10d\n", cost.bytes / 1e6,
                         site.servers, capacity.by_cores, capacity.by_network,
                         capacity.by_cores < capacity.by_network ? "cores" : "network",
                         capacity.saturating_workers, WorkersWithin(cost, site, 0.1),
                         WorkersWithin(cost, site, 0.5));
}

}  // namespace

std::string ScaleTable(const std::vector<Result>& results) {
  std::string table =
      "              | seconds per round                  |   GB/s | server CPU | peak MB\n"
      "   MB workers |   median      min–max     rounds | of all | / gradient | server/worker\n";
  for (const Result& result : results) absl::StrAppend(&table, ResultLine(result));
  return table;
}

std::string FittedLines(const std::vector<Result>& results) {
  std::string text = "fitted to the medians: seconds per round = a + b × workers\n";
  for (const auto& [bytes, of_size] : BySize(results)) {
    std::vector<Point> points;
    for (const Result* result : of_size) {
      points.push_back({static_cast<double>(result->cell.workers),
                        SpreadOf(result->measurement.seconds).median});
    }
    const auto line = FitLine(points);
    if (!line.has_value()) continue;
    absl::StrAppendFormat(&text, "%5.1f MB: a = %9.6f, b = %9.6f, R² = %.3f, from %d cells\n",
                          Megabytes(bytes), line->intercept, line->slope, line->explained,
                          points.size());
  }
  return text;
}

std::vector<GradientCost> CostsOf(const std::vector<Result>& results) {
  std::vector<GradientCost> costs;
  for (const auto& [bytes, of_size] : BySize(results)) {
    double cpu_seconds = 0, gradients = 0;
    for (const Result* result : of_size) {
      cpu_seconds += result->measurement.server_cpu_seconds;
      gradients += static_cast<double>(result->measurement.seconds.size()) * result->cell.workers;
    }
    costs.push_back({cpu_seconds / gradients, static_cast<double>(bytes)});
  }
  return costs;
}

std::string Estimates(const std::vector<GradientCost>& costs, const Site& site,
                      const std::vector<uint32_t>& servers) {
  std::string text = absl::StrFormat(
      "estimate: servers of %g cores like these and %g Gbit/s each way, %g s of compute in a "
      "batch\n"
      "              | gradients in a second, all servers | saturated  | sync workers that wait\n"
      "   MB servers |   by cores by network  bound by | by workers | at most 10%% at most 50%%\n",
      site.cores, 8e-9 * site.bytes_per_second, site.compute_seconds);
  for (const GradientCost& cost : costs) {
    for (const uint32_t count : servers) {
      Site several = site;
      several.servers = count;
      absl::StrAppend(&text, Estimate(cost, several));
    }
  }
  return text;
}

std::string SyncRounds(const std::vector<GradientCost>& costs, const Site& site,
                       const std::vector<uint32_t>& servers, const std::vector<uint32_t>& workers) {
  std::string text =
      "estimate: rounds in sync mode without overlap\n"
      "   MB workers servers | seconds per round | gradients in a second\n";
  for (const GradientCost& cost : costs) {
    for (const uint32_t pushing : workers) {
      for (const uint32_t count : servers) {
        Site several = site;
        several.servers = count;
        const double seconds = SyncRoundSeconds(cost, several, pushing);
        absl::StrAppendFormat(&text, "%5.1f %7d %7d | %17.5f | %21.1f\n", cost.bytes / 1e6, pushing,
                              count, seconds, pushing / seconds);
      }
    }
  }
  return text;
}

}  // namespace sluice::bench

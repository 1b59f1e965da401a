#include "tools/bench/optimizer_race/optimizer_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/bench/harness/cell.h"

namespace sluice::bench {
namespace {

std::vector<double> Ratios(const OptimizerRace& race) {
  std::vector<double> ratios;
  for (size_t i = 0; i < race.theirs.size(); ++i) ratios.push_back(race.theirs[i] / race.ours[i]);
  return ratios;
}

std::string Milliseconds(const std::vector<double>& seconds) {
  if (seconds.empty()) return absl::StrFormat("%9s %19s", "-", "");
  const Spread spread = SpreadOf(seconds);
  return absl::StrFormat("%9.3f %9.3f–%9.3f", spread.median * 1e3, spread.min * 1e3,
                         spread.max * 1e3);
}

std::string Ratio(const OptimizerRace& race) {
  if (race.theirs.empty()) return absl::StrFormat("%6s", "-");
  const Spread spread = SpreadOf(Ratios(race));
  return absl::StrFormat("%6.2f %6.2f–%5.2f", spread.median, spread.min, spread.max);
}

}  // namespace

std::string OptimizerTable(const std::vector<OptimizerRace>& races) {
  std::string table =
      "                | Sluice, ms a step             | torch::optim, ms a step       | times as "
      "fast\n"
      "optimizer       |    median       min–max       |    median       min–max       | median    "
      "min–max\n";
  for (const OptimizerRace& race : races) {
    absl::StrAppendFormat(&table, "%-15s | %s | %s | %s\n", race.name, Milliseconds(race.ours),
                          Milliseconds(race.theirs), Ratio(race));
  }
  return table;
}

}  // namespace sluice::bench

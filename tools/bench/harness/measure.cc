#include "tools/bench/harness/measure.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "tools/bench/harness/child.h"
#include "tools/bench/harness/sample.h"

namespace sluice::bench {
namespace {

std::string NameOf(const Cell& cell) {
  return absl::StrFormat("%s, %.1f MB, %d workers", cell.row.name, Megabytes(Bytes(cell)),
                         cell.workers);
}

}  // namespace

Availability FindAvailable(const std::vector<Row>& rows, const Programs& programs) {
  std::map<std::string, bool> known;
  const auto is_there = [&](const Need& need) {
    const auto [found, is_new] = known.emplace(need.what, false);
    if (is_new) {
      std::vector<std::string> probe = need.probe;
      if (absl::StartsWith(probe[0], "tools/")) probe[0] = CommandOf(programs, probe[0]).front();
      found->second = Succeeds(probe);
    }
    return found->second;
  };
  Availability availability;
  for (const Row& row : rows) {
    const auto missing = std::find_if_not(row.needs.begin(), row.needs.end(), is_there);
    if (missing == row.needs.end()) {
      availability.rows.push_back(row);
    } else {
      availability.skipped.push_back(absl::StrCat(row.name, " needs ", missing->what));
    }
  }
  return availability;
}

Outcome MeasureCells(const std::vector<Cell>& cells, const Programs& programs, uint32_t rounds,
                     uint32_t passes, const ProgressOutput& output) {
  std::vector<Measurement> measurements(cells.size());
  std::vector<absl::Status> statuses(cells.size());
  {
    ProgressLine progress(
        absl::StrFormat("measuring %d cells, %d times each", cells.size(), passes),
        std::max<size_t>(cells.size() * passes, 1), output, RealClock());
    for (uint32_t pass = 0; pass < passes; ++pass) {
      for (size_t i = 0; i < cells.size(); ++i) {
        progress.Reach(pass * cells.size() + i);
        if (!statuses[i].ok()) continue;
        statuses[i] = MeasureSample(cells[i], programs, rounds, measurements[i]);
      }
    }
  }
  Outcome outcome;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (statuses[i].ok()) {
      outcome.results.push_back({cells[i], std::move(measurements[i])});
    } else {
      outcome.failures.push_back(absl::StrCat(NameOf(cells[i]), ": ", statuses[i].message()));
    }
  }
  return outcome;
}

}  // namespace sluice::bench

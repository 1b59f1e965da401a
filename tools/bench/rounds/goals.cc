#include "tools/bench/rounds/goals.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

constexpr double kSmall = 1.7, kLarge = 102;

// A goal of the same size and number of workers on both sides.
Goal Against(const std::string& ours, const std::string& theirs, double at_least,
             double megabytes = kLarge, uint32_t workers = 1) {
  return {{ours, megabytes, workers}, {theirs, megabytes, workers}, at_least, 1};
}

void AddSocketGoals(const std::string& ours, const std::string& plain, std::vector<Goal>& goals) {
  goals.push_back(Against(ours, plain, 0.7));
  goals.push_back(Against(ours, "rpc-tcp", 1.5));
  goals.push_back(Against(ours, "rpc-tcp", 1.3, kLarge, 2));
  goals.push_back(Against(ours, "rpc-tcp", 1.3, kLarge, 4));
  goals.push_back(Against(ours, "mpi4py-blosc", 12));
  // Of all workers together: gradients in a second.
  goals.push_back({{ours, kLarge, 8}, {ours, kLarge, 2}, 0.85, 8.0 / 2});
  goals.push_back(Against(ours, "rpc-tcp", 1, kSmall));
  goals.push_back(Against(ours, "rpc-shm", 1, kSmall));
}

void AddSharedMemoryGoals(const std::string& ours, std::vector<Goal>& goals) {
  goals.push_back(Against(ours, "plain-unix", 1.4));
  goals.push_back(Against(ours, "rpc-shm", 3));
  goals.push_back(Against(ours, "mpi-sendrecv", 1));
}

const Result* Find(const CellName& name, const std::vector<Result>& results) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const Result& result) {
    return result.cell.row.name == name.row && result.cell.workers == name.workers &&
           result.cell.elements == ElementsOf(name.megabytes);
  });
  return found == results.end() ? nullptr : &*found;
}

std::string Workers(uint32_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

std::string Describe(const Goal& goal) {
  const std::string size = absl::StrFormat("%.1f MB, ", goal.ours.megabytes);
  if (goal.ours.row == goal.theirs.row) {
    return absl::StrCat(size, goal.ours.row, ": throughput with ", Workers(goal.ours.workers),
                        " / with ", goal.theirs.workers);
  }
  return absl::StrCat(size, Workers(goal.ours.workers), ": speed of ", goal.ours.row, " / ",
                      goal.theirs.row);
}

std::string Line(const Goal& goal, double reached) {
  const bool met = reached >= goal.at_least;
  const double missing = 100 * (1 - reached / goal.at_least);
  return absl::StrFormat(
      "  %-6s  %6.2f, at least %5.2f%s  %s\n", met ? "met" : "MISSED", reached, goal.at_least,
      met ? "            " : absl::StrFormat(", %4.1f %% off", missing), Describe(goal));
}

}  // namespace

std::vector<Goal> AllGoals() {
  std::vector<Goal> goals;
  AddSocketGoals("sluice-unix", "plain-unix", goals);
  AddSocketGoals("sluice-tcp", "plain-tcp", goals);
  AddSharedMemoryGoals("sluice-shm", goals);
  return goals;
}

GoalVerdict Judge(const std::vector<Goal>& goals, const std::vector<Result>& results) {
  GoalVerdict verdict;
  for (const Goal& goal : goals) {
    const Result* const ours = Find(goal.ours, results);
    const Result* const theirs = Find(goal.theirs, results);
    if (ours == nullptr || theirs == nullptr) continue;
    const double reached = goal.weight * SpreadOf(theirs->measurement.seconds).median /
                           SpreadOf(ours->measurement.seconds).median;
    if (reached < goal.at_least) ++verdict.missed;
    absl::StrAppend(&verdict.text, Line(goal, reached));
  }
  if (verdict.text.empty()) verdict.text = "  none: this run has none of their cells\n";
  verdict.text = absl::StrCat("goals, by the medians above\n", verdict.text);
  return verdict;
}

uint64_t ElementsOf(double megabytes) {
  return static_cast<uint64_t>(std::ceil(megabytes * 1e6 / sizeof(float)));
}

}  // namespace sluice::bench

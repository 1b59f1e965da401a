#include "server/replica/gathered_reports.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

HaveReport Joined(PushId push, const std::map<uint32_t, HaveReport>& parts) {
  HaveReport whole;
  whole.push = push;
  double squares = 0;
  bool measured = true;
  for (const auto& [replica, part] : parts) {
    whole.bytes += part.bytes;
    measured = measured && part.norm.has_value();
    squares += std::pow(part.norm.value_or(0), 2);
  }
  if (measured) whole.norm = std::sqrt(squares);
  return whole;
}

}  // namespace

absl::optional<HaveReport> GatheredReports::Take(uint32_t replica, const HaveReport& report) {
  const auto parts = parts_.find(report.push);
  if (parts == parts_.end()) return absl::nullopt;
  if (!parts->second.emplace(replica, report).second) return absl::nullopt;
  if (report.refused.ok() && parts->second.size() < replicas()) return absl::nullopt;
  HaveReport whole = Joined(report.push, parts->second);
  whole.refused = report.refused;
  if (!whole.refused.ok()) whole.norm = absl::nullopt;
  parts_.erase(parts);
  return whole;
}

absl::optional<std::vector<StripeReport>> GatheredReports::Take(uint32_t replica,
                                                                const StripeReport& report) {
  if (!carried_[replica].has_value()) carried_[replica] = report;
  const auto is_there = [](const absl::optional<StripeReport>& one) { return one.has_value(); };
  if (!std::all_of(carried_.begin(), carried_.end(), is_there)) return absl::nullopt;
  std::vector<StripeReport> all;
  all.reserve(carried_.size());
  for (absl::optional<StripeReport>& one : carried_) all.push_back(*std::exchange(one, {}));
  return all;
}

uint32_t GatheredReports::FirstMissing() const {
  const auto missing =
      std::find_if(carried_.begin(), carried_.end(),
                   [](const absl::optional<StripeReport>& one) { return !one.has_value(); });
  return static_cast<uint32_t>(missing - carried_.begin());
}

}  // namespace sluice

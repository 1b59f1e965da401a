#include "server/replica/gathered_reports.h"

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
  if (report.refused.ok() && parts->second.size() < replicas_) return absl::nullopt;
  HaveReport whole = Joined(report.push, parts->second);
  whole.refused = report.refused;
  if (!whole.refused.ok()) whole.norm = absl::nullopt;
  parts_.erase(parts);
  return whole;
}

}  // namespace sluice

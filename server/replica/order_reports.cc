#include "server/replica/order_reports.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

bool IsMissing(const absl::optional<StripeReport>& report) { return !report.has_value(); }

}  // namespace

void OrderReports::Begin(uint32_t replicas, absl::Time now) {
  reports_.assign(replicas, absl::nullopt);
  given_ = now;
}

void OrderReports::Take(uint32_t replica, const StripeReport& report) {
  if (replica < reports_.size() && IsMissing(reports_[replica])) reports_[replica] = report;
}

bool OrderReports::complete() const {
  return !reports_.empty() && std::none_of(reports_.begin(), reports_.end(), IsMissing);
}

std::vector<StripeReport> OrderReports::TakeAll() {
  std::vector<StripeReport> all;
  for (absl::optional<StripeReport>& report : reports_) all.push_back(*std::move(report));
  reports_.clear();
  return all;
}

absl::optional<AwaitedHolder> OrderReports::awaited() const {
  const auto missing = std::find_if(reports_.begin(), reports_.end(), IsMissing);
  if (missing == reports_.end()) return absl::nullopt;
  return AwaitedHolder{static_cast<uint32_t>(missing - reports_.begin()), given_};
}

}  // namespace sluice

#include "worker/connection/name_wait.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(200);
constexpr absl::Duration kShortest = absl::Milliseconds(1);

// When the name is free if nothing is heard until then; absent: the server does not say.
absl::optional<absl::Duration> RetryAfter(const absl::Status& taken) {
  const absl::optional<absl::Cord> text = taken.GetPayload("sluice/retry_after");
  absl::Duration after;
  if (!text.has_value() || !absl::ParseDuration(std::string(*text), &after)) return absl::nullopt;
  return after;
}

}  // namespace

absl::optional<absl::Duration> NameWait::PauseAfter(const absl::Status& refused, absl::Time now) {
  if (ReasonOf(refused) != Reason::kNameTaken) return absl::nullopt;
  if (!begun_.has_value()) begun_ = now;
  const absl::optional<absl::Duration> left = RetryAfter(refused);
  const absl::optional<absl::Duration> before = std::exchange(left_, left);
  if (now - *begun_ < kShort) return kPause;
  // It falls with time, unless the server has heard the other process.
  const bool falls = left.has_value() && before.has_value() && *left < *before;
  if (!falls || now - *begun_ >= most_) return absl::nullopt;
  if (!std::exchange(told_, true)) news_ = std::min(*left, *begun_ + most_ - now);
  return std::max(kShortest, std::min(kPause, *left));
}

absl::optional<absl::Duration> NameWait::TakeNews() { return std::exchange(news_, absl::nullopt); }

}  // namespace sluice

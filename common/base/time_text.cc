#include "common/base/time_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

// The smaller unit is left out if it is 0.
std::string TwoUnits(int64_t large, absl::string_view large_unit, int64_t small,
                     absl::string_view small_unit) {
  const std::string text = absl::StrCat(large, " ", large_unit);
  return small == 0 ? text : absl::StrCat(text, " ", small, " ", small_unit);
}

}  // namespace

std::string WholeTimeText(absl::Duration time) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  const int64_t seconds = absl::ToInt64Seconds(time);
  if (seconds < kMinute) return absl::StrCat(seconds, " s");
  if (seconds < kHour) return TwoUnits(seconds / kMinute, "min", seconds % kMinute, "s");
  if (seconds < kDay) return TwoUnits(seconds / kHour, "h", seconds % kHour / kMinute, "min");
  return TwoUnits(seconds / kDay, "d", seconds % kDay / kHour, "h");
}

}  // namespace sluice
